package thirdparty

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

// Nothing is released with a module that has no licence.
func TestModuleWithoutALicence(t *testing.T) {
	var out bytes.Buffer
	files := fstest.MapFS{"licence.go": {}, "testdata/LICENSE": {Data: []byte("x")}}
	if err := ofModule(&out, "example.com/m@v1.0.0", files); err == nil || out.Len() > 0 {
		t.Errorf("error %v, licences %q", err, &out)
	}
	files["sub/COPYING.txt"] = &fstest.MapFile{Data: []byte("do what you like\n")}
	if err := ofModule(&out, "example.com/m@v1.0.0", files); err != nil || !strings.Contains(out.String(), "m@v1.0.0, sub/COPYING.txt\n\ndo what you like\n") {
		t.Errorf("error %v, licences %q", err, &out)
	}
}
