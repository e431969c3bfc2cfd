#!/bin/sh
# Compiles programs against the binary interface of the MPI standard, which libmpi_abi.so.1 of this tree has.
#
#   @NAME@ -show                  the command that would be run
#   @NAME@ -showme:compile|link|incdirs|libdirs|libs|command
#   @NAME@ -compile-info, -link-info
#   @NAME@ -showme:version, -v     whose it is; with -v what the compiler says of itself too
#   @NAME@ @OPTION@=COMPILER           another compiler
@USAGE@#
# So does @VARIABLE@: it names another compiler than @COMPILER@.

here=$(readlink -f -- "$0") || exit 1
prefix=$(CDPATH='' cd -- "$(dirname -- "$here")/.." && pwd -P) || exit 1
compiler=${@VARIABLE@:-@COMPILER@}

run=exec
links=yes
sources=no
skips=no
tells=no
asked=''
for argument; do
    shift
    if [ $skips = yes ]; then
        skips=no
        set -- "$@" "$argument"
        continue
    fi
    case $argument in
        -show | --show | -showme | --showme)
            run=show
            continue ;;
        # Its answer comes in place of the compiler's work.
        -showme:* | --showme:* | -compile-info | -compile_info | -link-info | -link_info) asked=$argument ;;
        -cc=* | -cxx=* | -fc=* | -f90=* | -f77=*)
            compiler=${argument#*=}
            continue ;;
        -v) tells=yes ;;
        -c | -S | -E | -M | -MM | -fsyntax-only) links=no ;;
        # The next word is the option's.
        -o | -x | -I | -L | -D | -U | -T | -u | -z | -include | -imacros | -iquote | -isystem | -idirafter | -iprefix | \
            -MF | -MT | -MQ | -Xlinker | -Xpreprocessor | -Xassembler | --param) skips=yes ;;
        -?*) ;;
        *) sources=yes ;;
    esac
    set -- "$@" "$argument"
done

@MODULES@compile="-I$prefix/include@INCLUDE@"
search="@SEARCH@-L$prefix/lib -Wl,-rpath,$prefix/lib -Wl,--enable-new-dtags"
link="$search @LIBRARIES@"

case $asked in
    -showme:compile | --showme:compile) echo "$compile"; exit ;;
    -showme:link | --showme:link) echo "$link"; exit ;;
    -showme:version | --showme:version) echo "@NAME@: Tagwire @VERSION@ (Language: @LANGUAGE@)"; exit ;;
    -showme:incdirs | --showme:incdirs) echo "$prefix/include@INCDIRS@"; exit ;;
    -showme:libdirs | --showme:libdirs) echo "@LIBDIRS@$prefix/lib"; exit ;;
    -showme:libs | --showme:libs) echo @LIBS@; exit ;;
    -showme:command | --showme:command) echo "$compiler"; exit ;;
    -compile-info | -compile_info) echo "$compiler $compile"; exit ;;
    -link-info | -link_info) echo "$compiler $compile $link"; exit ;;
esac

# Shows words as a shell reads them again.
show() {
    line=$compiler
    for word; do
        case $word in
            '' | *[!A-Za-z0-9_./:=,+@%^-]*) word=\'$(printf '%s\n' "$word" | sed "s/'/'\\\\''/g")\' ;;
        esac
        line="$line $word"
    done
    printf '%s\n' "$line"
}

[ $tells$sources = yesno ] && echo "@NAME@ of Tagwire @VERSION@"
# Asked for its version, say, the compiler has nothing to link.
[ $sources = yes ] || [ $run = show ] || links=no

[ $run = show ] || run="exec $compiler"
if [ $links = yes ]; then
    $run "-I$prefix/include"@INCLUDED@ "$@"@SEARCHED@ "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -Wl,--enable-new-dtags @LIBRARIES@
else
    $run "-I$prefix/include"@INCLUDED@ "$@"
fi
