# Of go test -v: what tests log, without the place, and what fails. A package that logs no
# closing line of its own, which begins with belay, keeps that of go test.

/^(=== |PASS$)/ || /^ *--- PASS: / { next }

/^ok / && closed { next }

{
  sub(/^ +[a-z0-9_]+_test\.go:[0-9]+: /, "")
  closed = /^belay /
  print
  fflush()
}
