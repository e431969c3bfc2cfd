#!/bin/sh
# Compiles programs against the binary interface of the MPI standard, which libmpi_abi.so.1 of this tree has.
#
#   @NAME@ -show                  the command that would be run
#   @NAME@ -showme:compile|link|incdirs|libdirs|libs|command
#   @NAME@ -compile-info, -link-info
#
# @VARIABLE@ names another compiler than @COMPILER@.

here=$(readlink -f -- "$0") || exit 1
prefix=$(CDPATH='' cd -- "$(dirname -- "$here")/.." && pwd -P) || exit 1
compiler=${@VARIABLE@:-@COMPILER@}
compile="-I$prefix/include"
search="-L$prefix/lib -Wl,-rpath,$prefix/lib -Wl,--enable-new-dtags"
link="$search -lmpi_abi"

case ${1-} in
    -show | -showme | --showme)
        shift
        echo "$compiler $compile $* $link"
        exit ;;
    -showme:compile | --showme:compile) echo "$compile"; exit ;;
    -showme:link | --showme:link) echo "$link"; exit ;;
    -showme:incdirs | --showme:incdirs) echo "$prefix/include"; exit ;;
    -showme:libdirs | --showme:libdirs) echo "$prefix/lib"; exit ;;
    -showme:libs | --showme:libs) echo mpi_abi; exit ;;
    -showme:command | --showme:command) echo "$compiler"; exit ;;
    -compile-info | -compile_info) echo "$compiler $compile"; exit ;;
    -link-info | -link_info) echo "$compiler $compile $link"; exit ;;
esac

links=yes
sources=no
for argument; do
    case $argument in
        -c | -S | -E | -M | -MM | -fsyntax-only) links=no ;;
        -show)
            echo "$compiler $compile $* $link"
            exit ;;
        -*) ;;
        *) sources=yes ;;
    esac
done
# Asked for its version, say, the compiler has nothing to link.
[ $sources = yes ] || links=no

if [ $links = yes ]; then
    exec $compiler "-I$prefix/include" "$@" "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -Wl,--enable-new-dtags -lmpi_abi
fi
exec $compiler "-I$prefix/include" "$@"
