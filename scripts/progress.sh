# progress.sh: runs the long steps of a script and shows their progress on one line. Source it.
#
#   with_progress WHAT LOG COMMAND...   runs COMMAND with its output in LOG; if it fails, prints the end of LOG and stops the script
#   apt_progress WHAT LOG COMMAND...    the same for apt-get, which reports its own progress
#   build_progress WHAT LOG COMMAND...  the same for cmake --build with ninja: units done, units in all, time left
#   compile_jobs                        prints how many compilers to run at once
#
# On a terminal the line is rewritten in place; elsewhere (a log, CI) a new one is printed every half minute.

# As many as there are cores, and as fit into memory: a batch of sources takes up to 1.4 GB.
compile_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1400000) }' /proc/meminfo 2>/dev/null || true)
  if [[ -n $memory ]] && (( memory < cores )); then cores=$((memory > 0 ? memory : 1)); fi
  echo "$cores"
}

# show_line TEXT: the progress line.
show_line() {
  if [[ -t 2 ]]; then
    printf '\r\033[K%s' "$1" >&2
  elif (( SECONDS - progress_said >= 30 )); then
    printf '%s\n' "$1" >&2
    progress_said=$SECONDS
  fi
}

# need_folder FOLDER: makes it, or stops the script with a sentence.
need_folder() {
  if ! mkdir -p "$1" 2>/dev/null || [[ ! -w $1 ]]; then
    echo "${0##*/}: cannot write to $PWD/$1" >&2
    exit 3
  fi
}

# help_of SCRIPT: the comment at its top.
help_of() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$1"; }

# duration SECONDS: 75 becomes "1 min 15 s".
duration() {
  if (( $1 < 60 )); then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

# What a step has to say beyond its time, from the end of its log or status file.
plain_state() { :; }
apt_state() { # lines "dlstatus:1:12.5:Retrieving ..." and "pmstatus:PACKAGE:40:..."
  local line
  line=$(tail -n 1 "$1.status" 2>/dev/null || true)
  if [[ $line =~ ^(dl|pm)status:[^:]*:([0-9]+) ]]; then
    if [[ ${BASH_REMATCH[1]} == dl ]]; then printf ', downloading %s %%' "${BASH_REMATCH[2]}"; else printf ', unpacking %s %%' "${BASH_REMATCH[2]}"; fi
  fi
}
build_state() { # lines "[12/54] Building ..."
  local line done_units units left
  line=$(grep -a -o '^\[[0-9]*/[0-9]*\]' "$1" 2>/dev/null | tail -n 1 || true)
  if [[ $line =~ ([0-9]+)/([0-9]+) ]]; then
    done_units=${BASH_REMATCH[1]} units=${BASH_REMATCH[2]}
    printf ', %d of %d' "$done_units" "$units"
    if (( done_units >= 4 )); then
      left=$(((SECONDS - progress_began) * (units - done_units) / done_units))
      printf ', about %s left' "$(duration "$left")"
    fi
  fi
}

run_with_progress() { # STATE WHAT LOG COMMAND...
  local state=$1 what=$2 log=$3 status=0 pid
  shift 3
  progress_began=$SECONDS
  progress_said=$SECONDS
  # A process group of its own, so that Ctrl-C and kill end all of the step: ninja and the compilers, too.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  trap 'kill -TERM -- "-$pid" 2>/dev/null; printf "\n%s: interrupted; run the same command again to continue\n" "${0##*/}" >&2; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    show_line "$what: $(duration $((SECONDS - progress_began)))$("$state" "$log")"
    sleep 0.5
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  if [[ $status -ne 0 ]]; then
    tail -n 40 "$log" >&2
    echo "${0##*/}: $what failed; its output is in $log" >&2
    return "$status"
  fi
  echo "$what: $(duration $((SECONDS - progress_began)))"
}
with_progress() { run_with_progress plain_state "$@"; }
apt_progress() { run_with_progress apt_state "$@"; }
build_progress() { NINJA_STATUS='[%f/%t] ' run_with_progress build_state "$@"; }
