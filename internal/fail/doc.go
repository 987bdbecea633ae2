// Package fail lets a test kill the process at a named point of the code.
//
//	fail.Point("lock/granted")
//
// In a program that is built with the tag failpoints, the environment variable
// BELAY_FAILPOINT names one point, and optionally which passage of it ends the process:
// "lock/granted" or "lock/granted:2". The process kills itself there with SIGKILL: no
// deferred function runs, nothing is flushed, and its connections break.
//
// Without the tag Point is empty, and the compiler removes the call.
//
// A name is a string literal, "package/moment", that occurs once in the code. The harness
// that dies at each of them is cmd/guard-monitor/internal/failpoints; one of its tests
// collects the names and compares them with its table.
package fail
