package lock_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belaygo/belay/lock"
)

func TestCheckKey(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		ok        bool
	}{
		{"plain", "order:7", true},
		{"one byte", "k", true},
		{"space and newline", "a b\n", true},
		{"NUL", "\x00", true},
		{"words", "订单:7", true},
		{"longest", strings.Repeat("k", lock.MaxKeyLen), true},
		{"empty", "", false},
		{"too long", strings.Repeat("k", lock.MaxKeyLen+1), false},
		{"too long in bytes", strings.Repeat("锁", lock.MaxKeyLen/3+1), false},
		{"hash tag", "{tag}k", true},
		{"hash tag in the middle", "order:{42}:items", true},
		{"empty hash tag", "k{}", false},
		{"two hash tags", "{a}{b}", false},
		{"hash tag in a hash tag", "{{a}}", false},
		{"braces the other way round", "}k{", false},
		{"opening brace", "k{", false},
		{"closing brace", "}k", false},
		{"not UTF-8", "k\xff", false},
		{"half a rune", "锁"[:2], false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := lock.CheckKey(tt.key)
			if tt.ok && err != nil {
				t.Errorf("CheckKey: %v", err)
			}
			if tt.ok {
				return
			}
			wantIs(t, err, lock.ErrInvalidKey)
			l := newLocker(t, newFaults(), lock.Config{})
			_, err = l.Acquire(t.Context(), tt.key)
			wantIs(t, err, lock.ErrInvalidKey)
			_, err = l.TryAcquire(t.Context(), tt.key)
			wantIs(t, err, lock.ErrInvalidKey)
		})
	}
}

// oneTag is a key whose only braces are those of a hash tag.
var oneTag = regexp.MustCompile(`(?s)^[^{}]*\{[^{}]+\}[^{}]*$`)

func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"", "k", "{k}", "k\xff", "锁", strings.Repeat("k", 513)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		ok := key != "" && len(key) <= 512 && utf8.ValidString(key) &&
			(!strings.ContainsAny(key, "{}") || oneTag.MatchString(key))
		err := lock.CheckKey(key)
		if ok != (err == nil) {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
		if err != nil {
			wantIs(t, err, lock.ErrInvalidKey)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("the error on %q is not valid UTF-8", key)
		}
	})
}
