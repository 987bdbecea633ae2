package config

import (
	"fmt"
	"strings"
)

// OptionNames are the names of all single settings.
func OptionNames() []string { return names(options) }

// OptionTables are all settings as Markdown, for docs/operations.md.
func OptionTables() string {
	var b strings.Builder
	b.WriteString("| setting | environment | default | meaning |\n|---|---|---|---|\n")
	for i := range options {
		o := &options[i]
		writeRow(&b, o, fmt.Sprintf("`%s`", o.variable()))
	}
	for _, list := range []struct{ name, title string }{
		{redisList, "Each entry of the list `redis`"}, {receiverList, "Each entry of the list `receivers`"},
	} {
		fmt.Fprintf(&b, "\n%s, `%s<NAME>_<SETTING>` in the environment:\n\n| setting | | default | meaning |\n|---|---|---|---|\n", list.title, envName(list.name+"_"))
		if list.name == redisList {
			writeRows(&b, redisOptions)
		} else {
			writeRows(&b, receiverOptions)
		}
	}
	return b.String()
}

func writeRows[T any](b *strings.Builder, options []option[T]) {
	for i := range options {
		writeRow(b, &options[i], "`"+strings.ReplaceAll(options[i].value, "|", "\\|")+"`")
	}
}

func writeRow[T any](b *strings.Builder, o *option[T], what string) {
	def := "none"
	switch {
	case o.required:
		def = "required"
	case o.def != "":
		def = "`" + o.def + "`"
	}
	meaning := strings.ReplaceAll(strings.Join(o.usage, " "), "|", "\\|")
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", o.name, what, def, meaning)
}
