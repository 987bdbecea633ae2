package notify_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

// Events and heartbeats that a released version wrote are read, and no member of them
// is lost or changed on the way on.
func TestEventsOfReleases(t *testing.T) {
	files, err := filepath.Glob("testdata/v*/events.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, path := range files {
		for line := range strings.Lines(string(mustRead(t, path))) {
			line = strings.TrimSpace(line)
			schema, v := "interception.v1.json", any(new(notify.Event))
			if !strings.Contains(line, `"verdict"`) {
				schema, v = "heartbeat.v1.json", new(heartbeat.Heartbeat)
			}
			if err := json.Unmarshal([]byte(line), v); err != nil {
				t.Errorf("%s: %v in %s", path, err, line)
				continue
			}
			was := instance(t, []byte(line))
			if b, err := json.Marshal(v); err != nil || !reflect.DeepEqual(instance(t, b), was) {
				t.Errorf("%s: %s became %s, %v", path, line, b, err)
			}
			if err := compile(t, schema, "").Validate(was); err != nil {
				t.Errorf("%s: %v in %s", path, err, line)
			}
		}
	}
}
