package simdb

import (
	"regexp"
	"strings"
)

// A token is a part of a statement.
type token struct {
	kind byte   // w word, q quoted name, n number, s text, p parameter, o sign, 0 end
	text string // as it is written, but a word in upper case and a name without its quotes
	name string // of a word or name, as it is written
}

// kinds are those of the groups of lexeme, after that of spaces and comments.
const kinds = "wqnspo"

var lexeme = regexp.MustCompile("(--[^\n]*|[\\s;]+)|([A-Za-z_]\\w*)|(`[^`]*`|\"[^\"]*\")|(\\d+)|('(?:[^']|'')*')|(\\?|\\$\\d+)|(<=|<>|.)")

// tokens splits a statement. It knows no comments but those to the end of a line.
func tokens(sql string) (found []token) {
	for _, groups := range lexeme.FindAllStringSubmatch(sql, -1) {
		for i, text := range groups[2:] {
			if text == "" {
				continue
			}
			t := token{kind: kinds[i], text: text, name: text}
			switch t.kind {
			case 'w':
				t.text = strings.ToUpper(text)
			case 'q':
				t.name = text[1 : len(text)-1]
				t.text = t.name
			}
			found = append(found, t)
		}
	}
	return found
}
