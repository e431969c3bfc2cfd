#!/bin/sh
# Starts the ranks of a program on this machine: 'tagwire run' of this tree. Over several hosts start ranks by a launcher, as by
# 'srun --mpi=pmi2', 'prterun' or 'mpiexec' of MPICH, or by 'tagwire run --listen'.

here=$(readlink -f -- "$0") || exit 1
bin=$(CDPATH='' cd -- "$(dirname -- "$here")" && pwd -P) || exit 1
for argument; do
    case $argument in
        -host | -hosts | --host | --hosts | -H | -f | -hostfile | --hostfile | -machinefile | --machinefile | -ppn | -perhost)
            echo "mpiexec: $argument names hosts; this one starts ranks on one machine: see 'tagwire run --help' for --listen" >&2
            exit 1 ;;
        -n | -np | --np | --ranks) ;;
        -*) ;;
        *[!0-9]*) break ;;
    esac
done
exec "$bin/tagwire" run "$@"
