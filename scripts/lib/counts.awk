# Of the counts of packages, as results.awk writes them, one row of a table: how many tests of each
# suite passed, failed and were skipped.

BEGIN {
  columns = split("proofs guards requests outbox locks wild", suites)
  of["internal/dbtx"] = "proofs"
  of["dbguard"] = of["guard"] = of["internal/cost"] = "guards"
  of["once"] = of["inbox"] = "requests"
  of["notify/outbox"] = "outbox"
  of["lock/sqllock"] = "locks"
  of["internal/wild"] = "wild"
}

{
  sub(/^github.com\/belaygo\/belay\//, "", $1)
  suite = ""
  for (folder in of) if (index($1 "/", folder "/") == 1) suite = of[folder]
  passed[suite] += $2
  failed[suite] += $3
  skipped[suite] += $4
}

END {
  printf "| `%s` |", server
  for (i = 1; i <= columns; i++) {
    suite = suites[i]
    cell = passed[suite] + failed[suite] + skipped[suite] ? passed[suite] + 0 : "–"
    if (failed[suite]) cell = cell ", " failed[suite] " failed"
    if (skipped[suite]) cell = cell "/" skipped[suite]
    printf " %s |", cell
  }
  print ""
}
