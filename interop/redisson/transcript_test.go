package interop_test

import (
	"crypto/sha1"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// names replaces what differs from run to run.
type names struct {
	key    string
	owners []string // in order of appearance
}

var (
	ownerID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+`)
	requestID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	longTime  = regexp.MustCompile(`^\d{5,}$`)
)

func (n *names) replace(arg string) string {
	arg = strings.ReplaceAll(arg, n.key, "<lock>")
	arg = ownerID.ReplaceAllStringFunc(arg, n.owner)
	arg = requestID.ReplaceAllString(arg, "<request>")
	switch {
	case arg == strconv.FormatInt(ttl.Milliseconds(), 10):
		return "<watchdog>"
	case arg == lease:
		return "<lease>"
	case longTime.MatchString(arg): // of which Redisson draws a part at random
		return "<ms>"
	case arg == "" || strings.ContainsAny(arg, " \n"):
		return strconv.Quote(arg)
	}
	return arg
}

func (n *names) owner(id string) string {
	i := slices.Index(n.owners, id)
	if i < 0 {
		i = len(n.owners)
		n.owners = append(n.owners, id)
	}
	return fmt.Sprintf("<owner-%d>", i+1)
}

// line writes a command on one line. A script is named by its SHA-1, whether it
// was sent whole or by that name.
func (n *names) line(args []string) string {
	words := []string{strings.ToLower(args[0])}
	for _, arg := range args[1:] {
		words = append(words, n.replace(arg))
	}
	if words[0] == "eval" {
		words[0], words[1] = "evalsha", fmt.Sprintf("%x", sha1.Sum([]byte(args[1])))
	}
	return strings.Join(words, " ")
}

// transcript writes calls with what they led to, one block each.
func (n *names) transcript(calls []call) []string {
	var blocks []string
	for _, c := range calls {
		block := n.line(c.args) + "\n"
		for _, inner := range c.inner {
			block += "  " + n.line(inner) + "\n"
		}
		for _, wait := range c.waits {
			block += n.line(wait) + "\n"
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// effects writes what calls left behind of a lock and told others, in the words
// of one owner who comes first.
func effects(key string, calls []call) []string {
	n := &names{key: key}
	var done []string
	for _, c := range calls {
		for _, args := range c.inner {
			if !changes(args) {
				continue
			}
			line := n.line(args)
			switch fields := strings.Fields(line); fields[0] {
			case "hset": // of a lock that was free
				line = "hincrby" + strings.TrimPrefix(line, "hset")
			case "hdel": // the owner is the only field, and a hash without fields does not exist
				line = "del " + fields[1]
				fallthrough
			case "del": // nothing is left of what was done to it before
				done = slices.DeleteFunc(done, func(d string) bool { return strings.Fields(d)[1] == fields[1] })
			}
			done = append(done, line)
		}
	}
	return done
}

// changes reports whether a command changes something that others can see.
// Redisson's latch is known to one unlock only, and Belay's line to Belay.
func changes(args []string) bool {
	if len(args) > 1 && (strings.HasPrefix(args[1], "redisson_unlock_latch:") || strings.HasPrefix(args[1], "belay_line:")) {
		return false
	}
	switch strings.ToLower(args[0]) {
	case "exists", "hexists", "hkeys", "hget", "hgetall", "hlen", "get", "pttl", "time", "type":
		return false
	}
	return true
}
