# -i8 and its like make an INTEGER of 8 bytes, which no handle and no count of the library is.
for word in ${compiler} "$@"; do
    case $word in
        -i8 | -fdefault-integer-8 | -finteger-4-integer-8)
            echo "@NAME@: $word: INTEGER has 4 bytes in MPI of Tagwire" >&2
            exit 1 ;;
    esac
done

# Modules fit to the compiler that has built them: each has a folder, by its name and version.
banner=$(${compiler} --version 2>/dev/null | head -n 1)
case $banner in
    'GNU Fortran'*) version=$(${compiler} -dumpversion) && kind=gfortran-${version%%.*} ;;
    '') kind='' ;;
    *) kind=$(printf '%s' "${compiler##*/} $banner" | tr -cs 'A-Za-z0-9.' -) ;;
esac
if [ -z "$kind" ]; then
    echo "@NAME@: '$compiler' is no Fortran compiler here: install one (gfortran 8 or later), or name one by @VARIABLE@ or -fc=COMPILER" >&2
    exit 127
fi
modules=$prefix/lib/fortran/$kind

# Builds the modules of this compiler. Whoever is first puts them into their place.
modules_build() {
    mkdir -p "$prefix/lib/fortran" && work=$(mktemp -d "$prefix/lib/fortran/.new-XXXXXX") || return 1
    texts=$prefix/share/tagwire/fortran
    (
        cd "$work" && mkdir made && ln -s "$prefix/lib/libmpifort_abi.so" "$prefix/lib/libmpi_abi.so" . &&
            for source in mpi mpi_f08; do
                ${compiler} -O2 -fPIC -c "$texts/$source.f90" || exit 1
            done &&
            ar crs libmpifort_mod.a mpi.o mpi_f08.o &&
            ${compiler} "$texts/probe.f90" -o probe -L. -lmpifort_mod -lmpifort_abi -lmpi_abi "-Wl,-rpath,$prefix/lib" &&
            LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ./probe && mv ./*.mod libmpifort_mod.a made
    ) >"$work/said" 2>&1
    status=$?
    if [ $status = 0 ]; then
        # By renames: a compile beside this never finds a part of the modules, and who builds them beside this finds them built.
        [ "${1-}" != again ] || [ ! -d "$modules" ] || mv -T "$modules" "$work/old" || [ ! -d "$modules" ] || status=1
        [ -d "$modules" ] || mv -T "$work/made" "$modules" 2>/dev/null || [ -d "$modules" ] || status=1
    elif [ "${1-}" = again ]; then
        cat "$work/said" >&2
    else
        why=$(sed -n 's/^probe: //p' "$work/said")
        # The trial may end by a signal, which the runtime of Fortran tells in a line of its own.
        [ -n "$why" ] || why=$(grep -i 'error\|signal' "$work/said" | head -n 1)
    fi
    rm -rf "$work"
    return $status
}

if [ "${1-}" = --rebuild ]; then
    modules_build again || { echo "@NAME@: the modules of $kind have not been built" >&2; exit 1; }
    echo "$modules"
    exit
fi
if [ ! -d "$modules" ] && ! modules_build 2>/dev/null; then
    built=$(ls "$prefix/lib/fortran/" 2>/dev/null | tr '\n' ' ')
    built=${built% }
    echo "@NAME@: no modules mpi and mpi_f08 for $kind (built: ${built:-none}): ${why:-$prefix/lib/fortran cannot be written}" >&2
    chosen=''
    [ "$compiler" = "@COMPILER@" ] || chosen=" -fc='$compiler'"
    echo "@NAME@: $prefix/bin/mpifort --rebuild$chosen builds them, where lib/fortran may be written; mpif.h needs none" >&2
    modules=''
fi
