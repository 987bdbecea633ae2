package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belaygo/belay/internal/heartbeat"
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

// An object of a schema.
type object struct {
	Type       any               `json:"type"`
	Enum       []string          `json:"enum"`
	Ref        string            `json:"$ref"`
	Properties map[string]object `json:"properties"`
	Required   []string          `json:"required"`
}

// The schemas name the members that the structs have, as the structs write them.
func TestSchemaIsThatOfTheStructs(t *testing.T) {
	for name, v := range map[string]any{"interception.v1.json": notify.Event{}, "heartbeat.v1.json": heartbeat.Heartbeat{}} {
		var schema struct {
			Defs map[string]object `json:"$defs"`
		}
		if err := json.Unmarshal(mustRead(t, "schema/"+name), &schema); err != nil {
			t.Fatal(err)
		}
		compareMembers(t, name, schema.Defs["data"], reflect.TypeOf(v))
	}
}

// compareMembers compares an object of a schema with the tags of a struct.
func compareMembers(t *testing.T, name string, described object, written reflect.Type) {
	t.Helper()
	var members, required []string
	for field := range written.Fields() {
		member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if member == "-" {
			continue
		}
		members = append(members, member)
		if !strings.Contains(options, "omit") {
			required = append(required, member)
		}
		if got, want := jsonType(described.Properties[member]), jsonTypeOf(field.Type, options); got != want {
			t.Errorf("%s: %s is %s, the struct writes %s", name, member, got, want)
		}
		if inner := deref(field.Type); inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			compareMembers(t, name+": "+member, described.Properties[member], inner)
		}
	}
	slices.Sort(members)
	if got := slices.Sorted(maps.Keys(described.Properties)); !slices.Equal(got, members) {
		t.Errorf("%s: the schema has %q, the struct %q", name, got, members)
	}
	slices.Sort(required)
	if got := slices.Sorted(slices.Values(described.Required)); !slices.Equal(got, required) {
		t.Errorf("%s: the schema requires %q, the struct always writes %q", name, got, required)
	}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// jsonType is the first type of a member, as the schema has it.
func jsonType(o object) string {
	switch {
	case o.Enum != nil, o.Ref == "#/$defs/token":
		return "string"
	case o.Ref == "#/$defs/int64":
		return "integer"
	}
	if several, ok := o.Type.([]any); ok { // the other one is null
		o.Type = several[0]
	}
	return fmt.Sprint(o.Type)
}

// jsonTypeOf is the type of a field in JSON.
func jsonTypeOf(t reflect.Type, options string) string {
	switch kind := deref(t).Kind(); {
	case kind == reflect.String, deref(t) == reflect.TypeFor[time.Time](), strings.Contains(options, "string"):
		return "string"
	case kind == reflect.Slice:
		return "array"
	case kind == reflect.Bool:
		return "boolean"
	case kind == reflect.Struct:
		return "object"
	default:
		return "integer"
	}
}
