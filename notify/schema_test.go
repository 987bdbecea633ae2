package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belaygo/belay/notify"
)

// compile returns the schema in the folder schema, or a part of it.
func compile(t *testing.T, name, part string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join("schema", name) + part)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance returns JSON as the schema library wants it.
func instance(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestExamplesAdhereToTheSchema(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Collect(maps.Keys(examples())), "heartbeat")
	slices.Sort(want)
	var got []string
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		got = append(got, name)
		schema := "interception.v1.json"
		if name == "heartbeat" {
			schema = "heartbeat.v1.json"
		}
		example := instance(t, mustRead(t, path))
		if err := compile(t, schema, "").Validate(example); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		// dataschema leads to the part that describes data.
		url := example.(map[string]any)["dataschema"].(string)
		name, part, _ := strings.Cut(url[strings.LastIndex(url, "/schema/")+len("/schema/"):], "#")
		if name != schema {
			t.Errorf("%s: dataschema is %s", path, url)
		}
		if err := compile(t, name, "#"+part).Validate(example.(map[string]any)["data"]); err != nil {
			t.Errorf("%s: data: %v", path, err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("examples of %q, want one of each verdict and the heartbeat: %q", got, want)
	}
}

// TestSchemaOfCounts: only the end of an outage may tell of nothing.
func TestSchemaOfCounts(t *testing.T) {
	data := compile(t, "interception.v1.json", "#/$defs/data")
	for count, valid := range map[string]bool{"-1": false, "0": true, "1": true} {
		if err := data.Validate(instance(t, fmt.Appendf(nil, `{"verdict": "degraded", "outcome": "committed",
			"service": "s", "caught_at": "2026-11-21T09:30:07Z", "count": %s}`, count))); (err == nil) != valid {
			t.Errorf("count %s: %v", count, err)
		}
	}
}

// What cannot be read does not adhere to the schema either.
func TestSchemaRefuses(t *testing.T) {
	schema := compile(t, "interception.v1.json", "")
	spoilt := maps.Clone(refusals)
	// Bounds that JSON Schema cannot express for a text.
	delete(spoilt, "caught_at too far")
	delete(spoilt, "token is huge")
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			envelope, data := document(t)
			spoil(envelope, data)
			b, err := json.Marshal(envelope)
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(instance(t, b)) == nil {
				t.Errorf("the schema allows %s", b)
			}
		})
	}
}

func TestSchemaToleratesUnknownMembers(t *testing.T) {
	envelope, data := document(t)
	envelope["later"], data["later"] = 1, map[string]any{"a": []int{1}}
	data["place"].(map[string]any)["rack"] = "r1"
	data["versions"].(map[string]any)["seen"] = "9"
	b, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	if err := compile(t, "interception.v1.json", "").Validate(instance(t, b)); err != nil {
		t.Errorf("the schema refuses unknown members: %v", err)
	}
	var event notify.Event
	if err := event.UnmarshalJSON(b); err != nil {
		t.Errorf("the reader refuses unknown members: %v", err)
	}
}

// The package comment, where people look first, names every member of data.
func TestPackageCommentNamesAllMembers(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(mustRead(t, "schema/interception.v1.json"), &schema); err != nil {
		t.Fatal(err)
	}
	members := schema.Defs["data"].Properties
	if len(members) == 0 {
		t.Fatal("the schema describes no members of data")
	}
	var named []string
	for line := range strings.Lines(string(mustRead(t, "doc.go"))) {
		if row, ok := strings.CutPrefix(line, "//\t"); ok && !strings.HasPrefix(row, " ") {
			// Two names may share a row: "owner, token".
			first, rest, _ := strings.Cut(row, " ")
			named = append(named, strings.Trim(first, ","))
			if strings.HasSuffix(first, ",") {
				named = append(named, strings.Fields(rest)[0])
			}
		}
	}
	slices.Sort(named)
	if want := slices.Sorted(maps.Keys(members)); !slices.Equal(named, want) {
		t.Errorf("the package comment names %q, the schema %q", named, want)
	}
}
