// Licences writes the licences of the code of others that programs contain to standard
// output, for the Dockerfile. It needs no other module, so that only its own code is
// downloaded to build it.
//
//	licences guard-monitor >THIRD_PARTY_LICENSES
package main

import (
	"fmt"
	"os"

	"github.com/belaygo/belay/deploy/release/thirdparty"
)

func main() {
	texts, err := thirdparty.Licences(os.Args[1:])
	if err == nil {
		_, err = os.Stdout.Write(texts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}
