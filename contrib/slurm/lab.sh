#!/bin/sh
# An experiment in parts, as an array job of Slurm; each task runs one part, and the last to end merges all.
#
#   sbatch --array=1-8 contrib/slurm/lab.sh bundle/locations RESULTS [OPTION of marline lab run]...
#
# RESULTS is a directory that all nodes share. A task that was ended runs again with the same command, and continues.
# Without Slurm, SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT say which part of how many this is.
#SBATCH --job-name=marline-lab
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=12:00:00
#SBATCH --requeue
set -eu

experiment=${1:?an experiment, as marline lab list names it} results=${2:?a directory for results}
shift 2
part=${SLURM_ARRAY_TASK_ID:?run as an array job} parts=${SLURM_ARRAY_TASK_COUNT:?run as an array job}
marline=${MARLINE:-marline}

mkdir -p "$results"
"$marline" lab run "$experiment" --shard "$part/$parts" --jobs "${SLURM_CPUS_PER_TASK:-1}" --out "$results/part-$part" "$@"
: >"$results/part-$part/done"

# The directory can be made once, so that one task alone merges.
if [ "$(find "$results" -path '*/part-*/done' | wc -l)" -eq "$parts" ] && mkdir "$results/merging" 2>/dev/null; then
    "$marline" lab merge "$results"/part-*/ --out "$results/whole"
    rmdir "$results/merging"
fi
