// Package library knows the version of Belay that a program was built with.
package library

import (
	"runtime/debug"
	"sync"
)

const path = "github.com/belaygo/belay"

// Version returns the version of this module that the program was built with, "unknown" without build
// information.
var Version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
})
