package config

import (
	"fmt"
	"io"
	"strings"
)

// Usage writes what every flag, variable and list entry means.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Settings, with their flags:\n\n")
	fmt.Fprintf(&b, "  -%s FILE\n        YAML file with settings; see deploy/guard-monitor.yaml. Environment: %s.\n", fileFlag, fileVariable)
	for i := range options {
		writeFlag(&b, &options[i])
	}
	fmt.Fprintf(&b, "  -%s HOST:PORT,...\n        One Redis to watch, in place of those in the file. Environment: %s.\n",
		flagName(redisNodes), envName(redisNodes))
	fmt.Fprintf(&b, "        Its name is redis: %sREDIS_REDIS_PASSWORD is its password, and so on.\n", envPrefix)
	b.WriteString("\nA setting of the file has the flag's name, with '_' and '.' for '-': see the sample.\n")
	writeList(&b, "Each entry of the list redis, in the file, is a Redis to watch", redisList, redisOptions)
	writeList(&b, "Each entry of the list receivers, in the file, is told of incidents", receiverList, receiverOptions)
	b.WriteString("\nThe file weighs least, then the environment, then flags. A secret can also be read from a\nfile: add _file to its name (-file to a flag, _FILE to a variable).\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFlag[T any](b *strings.Builder, o *option[T]) {
	fmt.Fprintf(b, "  -%s %s\n", o.flag(), o.value)
	for _, line := range o.usage {
		fmt.Fprintf(b, "        %s\n", line)
	}
	def := o.def
	if def == "" {
		def = "none"
	}
	fmt.Fprintf(b, "        Environment: %s. Default: %s.\n", o.variable(), def)
}

func writeList[T any](b *strings.Builder, title, list string, options []option[T]) {
	fmt.Fprintf(b, "\n%s.\nEnvironment: %s<NAME>_<OPTION>.\n\n", title, envName(list+"_"))
	for i := range options {
		o := &options[i]
		fmt.Fprintf(b, "  %s: %s%s\n", o.name, o.value, defaultWords(o))
		for _, line := range o.usage {
			fmt.Fprintf(b, "        %s\n", line)
		}
	}
}

func defaultWords[T any](o *option[T]) string {
	switch {
	case o.required:
		return " (required)"
	case o.def == "":
		return ""
	}
	return " (default " + o.def + ")"
}

// Sample returns a file with every setting, commented out: a line that begins
// with "#" and no space behind it is a setting.
func Sample() string {
	var b strings.Builder
	b.WriteString(`# Settings of guard-monitor: guard-monitor serve -config guard-monitor.yaml
#
# Only amqp_url is required. What is commented out shows the default, or an
# example where there is none. Environment and flags outweigh this file:
# guard-monitor -h lists them. A secret can be read from a file by adding _file
# to its name, as in amqp_url_file: /run/secrets/amqp_url.
`)
	section := ""
	for i := range options {
		o := &options[i]
		head, name, nested := strings.Cut(o.name, ".")
		indent := "  "
		if !nested {
			head, name, indent = "", o.name, ""
		}
		b.WriteByte('\n')
		if head != section && head != "" {
			fmt.Fprintf(&b, "#%s:\n", head)
		}
		section = head
		writeSample(&b, indent, indent+name, o)
	}
	b.WriteString("\n# Every Redis that keeps locks. The cause of a failure is found by what happened there.\n#redis:\n")
	writeSampleList(&b, redisOptions)
	b.WriteString("\n# Who is told of incidents.\n#receivers:\n")
	writeSampleList(&b, receiverOptions)
	return b.String()
}

func writeSample[T any](b *strings.Builder, indent, name string, o *option[T]) {
	for _, line := range o.usage {
		fmt.Fprintf(b, "%s# %s\n", indent, line)
	}
	value := o.def
	if value == "" {
		value = o.example
	}
	if strings.Contains(value, ",") && !strings.HasPrefix(value, "[") {
		value = "[" + strings.ReplaceAll(value, ",", ", ") + "]"
	}
	fmt.Fprintf(b, "#%s: %s\n", name, value)
}

func writeSampleList[T any](b *strings.Builder, options []option[T]) {
	for i := range options {
		name := "    " + options[i].name
		if i == 0 {
			name = "  - " + options[i].name
		}
		writeSample(b, "    ", name, &options[i])
	}
}
