# Reads `go test -v` of the packages of lock engines and prints what failed, with its
# output, what was not run, how many checks of each engine passed, and a closing line. A
# check is a test without parts, or a part of one.

/^=== (RUN|NAME|CONT|PAUSE) / { test = $3; next }

/^ *--- (PASS|FAIL|SKIP): / {
  result[$3] = $2
  parent = $3
  while (sub(/\/[^\/]*$/, "", parent)) whole[parent] = 1
  if ($2 == "FAIL:") { print; printf "%s", output[$3]; fflush() }
  next
}

# The end of a package.
/^(ok|FAIL)[ \t]+[^ \t]+[ \t]/ {
  name = $2
  sub(/.*\//, "", name)
  passed = failed = unpromised = skipped = 0
  for (check in result) {
    if (check in whole) continue
    if (result[check] == "PASS:") passed++
    if (result[check] == "FAIL:") failed++
    if (result[check] != "SKIP:") continue
    if (output[check] ~ /the engine does not promise this/) {
      unpromised++
    } else {
      skipped++
      printf "NOT RUN: %s %s%s\n", name, check, reason(output[check])
    }
  }
  if ($1 == "FAIL" && failed == 0) failed = 1 # it ended before its tests did
  if ($1 == "FAIL" && test != "") printf "%s", output[test]
  if (passed + failed > 0) {
    engines++
    printf "%s: %d passed, %d failed, %d that it does not promise, %d not run\n", name, passed, failed, unpromised, skipped
    fflush()
  }
  checks += passed
  failures += failed
  split("", result)
  split("", whole)
  split("", output)
  test = ""
  next
}

/^(PASS|FAIL|\?)/ { next }
/^(panic: |fatal error: )/ { print }
test != "" { output[test] = output[test] $0 "\n"; next }
{ print }

# reason returns what a skipped test has said.
function reason(text) {
  sub(/^ *[a-z0-9_]+\.go:[0-9]+/, "", text)
  gsub(/\n/, "", text)
  return text
}

END {
  printf "belay engines: %d engines, %d checks passed, %d failed\n", engines, checks, failures
  exit failures > 0 || engines < want
}
