#!/usr/bin/env bash
# scripts.sh SOURCE: what the scripts answer to words they do not know, and how they count tests. Builds nothing.
set -euo pipefail
source_folder=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect CODE TEXT COMMAND...: the command ends with CODE and says TEXT.
expect() {
  local code=$1 text=$2 status=0 output
  shift 2
  output=$("$@" 2>&1 </dev/null) || status=$?
  if [[ $status -ne $code || $output != *"$text"* ]]; then
    echo "$*: exit code $status, expected $code; it says: $output; expected in it: $text"
    failures=$((failures + 1))
  fi
}

expect 0 "STAGE" "$source_folder/scripts/test.sh" --help
expect 0 "Debian" "$source_folder/scripts/setup.sh" --help
expect 2 "unknown argument --network" "$source_folder/scripts/quickstart.sh" --network
expect 0 "--networks" "$source_folder/scripts/quickstart.sh" --help
expect 2 "unknown argument --test" "$source_folder/scripts/setup.sh" --test
expect 0 "no server" "$source_folder/scripts/docs.sh" --help
expect 2 "unknown argument --site" "$source_folder/scripts/docs.sh" --site
expect 2 "has files that are not an earlier site" "$source_folder/scripts/docs.sh" "$source_folder/tests/house"
expect 2 "expected one folder at most" "$source_folder/scripts/docs.sh" a b
expect 2 "unknown argument --fast" "$source_folder/scripts/python_wheel.sh" --fast
expect 2 "unknown stage relase" "$source_folder/scripts/test.sh" relase
expect 2 "all is given together with asan" "$source_folder/scripts/test.sh" all asan
expect 0 "" env ATTMIRROR_NO_SETUP=1 "$source_folder/scripts/setup.sh" --tests

# A step that fails shows the end of its log and stops the script; one that works says how long it took.
cat >"$scratch/steps.sh" <<END
set -euo pipefail
source "$source_folder/scripts/progress.sh"
with_progress "a good step" "$scratch/log" true
with_progress "a bad step" "$scratch/log" bash -c 'echo the reason; exit 7'
echo "not reached"
END
expect 7 "the reason" bash "$scratch/steps.sh"
expect 7 "a good step: " bash "$scratch/steps.sh"
expect 7 "a bad step failed" bash "$scratch/steps.sh"
if [[ $(bash "$scratch/steps.sh" 2>&1) == *"not reached"* ]]; then
  echo "a failed step does not stop the script"
  failures=$((failures + 1))
fi

# Who ends the script ends the step, with all that it has started.
cat >"$scratch/long.sh" <<END
set -euo pipefail
source "$source_folder/scripts/progress.sh"
with_progress "a long step" "$scratch/log" bash -c 'sleep 1000 & echo \$! >"$scratch/pid"; wait'
END
bash "$scratch/long.sh" >/dev/null 2>"$scratch/said" &
script=$!
until [[ -s $scratch/pid ]]; do sleep 0.02; done
kill -TERM "$script"
status=0
wait "$script" || status=$?
grandchild=$(cat "$scratch/pid")
for ((turn = 0; turn < 200; ++turn)); do
  if ! kill -0 "$grandchild" 2>/dev/null; then break; fi
  sleep 0.02
done
if kill -0 "$grandchild" 2>/dev/null; then
  echo "a step goes on after the script was ended"
  kill "$grandchild"
  failures=$((failures + 1))
fi
if [[ $status -ne 130 ]] || ! grep -q "interrupted" "$scratch/said"; then
  echo "an ended script exits with $status and says: $(cat "$scratch/said")"
  failures=$((failures + 1))
fi

# Counting: a program with three tests, one that was killed in the middle, an entry without a file, one that was skipped.
mkdir "$scratch/results"
cat >"$scratch/junit.xml" <<'END'
<testsuite>
  <testcase name="room" time="3" status="fail"/>
  <testcase name="killed" time="1" status="fail"/>
  <testcase name="house.rooms" time="2" status="run"/>
  <testcase name="report.browser" time="0" status="notrun"/>
</testsuite>
END
cat >"$scratch/results/room.xml" <<'END'
<testsuites><testsuite name="Suite">
  <testcase name="Passes" classname="Suite" time="1.5" status="run" result="completed"/>
  <testcase name="Fails" classname="Suite" time="1" status="run" result="completed"><failure message="no"/></testcase>
  <testcase name="Skips" classname="Suite" time="0" status="run" result="skipped"><skipped message="why"/></testcase>
</testsuite></testsuites>
END
cat >"$scratch/results/killed.xml" <<'END'
<testsuites><testsuite name="Other">
  <testcase name="WasFine" classname="Other" time="0.5" status="run" result="completed"/>
</testsuite></testsuites>
END
expect 0 "3 2 2" python3 -B "$source_folder/scripts/test_summary.py" "$scratch/junit.xml" "$scratch/results"
expect 0 "2.0 s  house.rooms" python3 -B "$source_folder/scripts/test_summary.py" "$scratch/junit.xml" "$scratch/results"

exit $((failures > 0))
