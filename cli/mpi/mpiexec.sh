#!/bin/sh
# Starts the ranks of a program on this machine, by 'tagwire' of this tree: '@NAME@ --help' says how.

here=$(readlink -f -- "$0") || exit 1
exec "${here%/*}/tagwire" @NAME@ "$@"
