//go:build failpoints

package fail

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// Variable names the point that kills the process: NAME or NAME:NTH.
const Variable = "BELAY_FAILPOINT"

var (
	armed, nth = parse(os.Getenv(Variable))
	passages   atomic.Int64
)

// parse returns the name, and which passage is meant: the first by default.
func parse(value string) (name string, nth int64) {
	name, text, found := strings.Cut(value, ":")
	if !found {
		return name, 1
	}
	nth, err := strconv.ParseInt(text, 10, 64)
	if err != nil || nth < 1 {
		panic(Variable + "=" + value + ": want NAME or NAME:NTH")
	}
	return name, nth
}

// Point kills the process if name is armed and this is the passage that is meant.
func Point(name string) {
	if name != armed || passages.Add(1) != nth {
		return
	}
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic("kill this process: " + err.Error())
	}
	select {} // the signal is on its way
}
