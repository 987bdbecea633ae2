package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
)

// The sample file and the table in the documentation have every setting with its
// default, and the sample can be read.
func TestDocumented(t *testing.T) {
	sample, manual := read(t, "deploy/guard-monitor.yaml"), read(t, "docs/guard-monitor.md")
	_, table, _ := strings.Cut(manual, "<!-- settings -->")
	table, _, _ = strings.Cut(table, "<!-- /settings -->")
	settings := 0
	each(reflect.TypeFor[config.Config](), "", func(name, def string) {
		settings++
		last := name[strings.LastIndexByte(name, '.')+1:]
		if !regexp.MustCompile(`(?m)^# *(- )?` + last + `: `).MatchString(sample) {
			t.Errorf("the sample lacks %s", name)
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| (\\S+) ").FindStringSubmatch(table)
		if row == nil || def != "" && row[1] != "`"+def+"`" {
			t.Errorf("docs/guard-monitor.md has %q of %s, default %q", row, name, def)
		}
	})
	if rows := strings.Count(table, "\n| `"); rows != settings {
		t.Errorf("docs/guard-monitor.md has %d settings, want %d", rows, settings)
	}

	live := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(sample, "$1")
	for _, line := range []string{"    secret: SEC...\n", "    mentions: [\"13800000000\"]\n"} { // not for a webhook
		live = strings.Replace(live, line, "", 1)
	}
	c, err := load(t, live, map[string]string{"BELAY_AMQP_URL": broker, "METRICS_TOKEN": "0123456789abcdef", "SHOP_TOKEN": "fedcba9876543210"})
	if err != nil {
		t.Fatalf("the sample, uncommented: %v\n%s", err, live)
	}
	// What has a default shows it.
	bare, err := load(t, "amqp_url: "+broker+"\nreceivers: [{name: a, type: webhook, url: http://a/}]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, reflect.ValueOf(*c), reflect.ValueOf(*bare))
	same(t, reflect.ValueOf(c.Receivers[0]), reflect.ValueOf(bare.Receivers[0]))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// each calls f for every setting below t; those of a list have no prefix.
func each(t reflect.Type, prefix string, f func(name, def string)) {
	for field := range t.Fields() {
		name := prefix + field.Tag.Get("yaml")
		switch {
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
			each(field.Type.Elem(), "", f)
		case field.Type.Kind() == reflect.Struct:
			each(field.Type, name+".", f)
		default:
			f(name, field.Tag.Get("default"))
		}
	}
}

func same(t *testing.T, have, want reflect.Value) {
	t.Helper()
	for field := range have.Type().Fields() {
		a, b := have.FieldByIndex(field.Index), want.FieldByIndex(field.Index)
		if _, ok := field.Tag.Lookup("default"); ok && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("the sample has %v for %s, whose default is %v", a, field.Name, b)
		} else if !ok && a.Kind() == reflect.Struct {
			same(t, a, b)
		}
	}
}
