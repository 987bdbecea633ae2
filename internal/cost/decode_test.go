package cost_test

import (
	"bytes"
	"crypto/sha1" // the hash by which Redis knows a script
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	literal = regexp.MustCompile(`(?:_binary)?'(?:[^'\\]|\\.|'')*'|(?:\B-)?\b\d+(?:\.\d+)?\b`)
	space   = regexp.MustCompile(`\s+`)
)

// plain returns a statement without its values.
func plain(statement string) string {
	return strings.TrimSpace(space.ReplaceAllString(literal.ReplaceAllString(statement, "?"), " "))
}

// mysqlDecoder reads the protocol of MySQL.
type mysqlDecoder struct{ rest []byte }

func (d *mysqlDecoder) decode(sent []byte) (requests []string) {
	d.rest = append(d.rest, sent...)
	for len(d.rest) >= 4 {
		size := int(d.rest[0]) | int(d.rest[1])<<8 | int(d.rest[2])<<16
		if len(d.rest) < 4+size {
			break
		}
		sequence, packet := d.rest[3], d.rest[4:4+size]
		if d.rest = d.rest[4+size:]; sequence > 0 || size == 0 {
			continue // it logs in
		}
		switch packet[0] {
		case 0x01: // it quits
		case 0x03:
			requests = append(requests, plain(string(packet[1:])))
		case 0x16:
			requests = append(requests, "PREPARE "+plain(string(packet[1:])))
		case 0x17:
			requests = append(requests, "EXECUTE")
		default:
			requests = append(requests, "command "+strconv.Itoa(int(packet[0])))
		}
	}
	return requests
}

// postgresDecoder reads the protocol of PostgreSQL.
type postgresDecoder struct {
	rest     []byte
	started  bool
	prepared map[string]string // statements by name
	bound    string
}

func (d *postgresDecoder) decode(sent []byte) (requests []string) {
	d.rest = append(d.rest, sent...)
	for {
		kind, head := byte(0), 0
		if d.started {
			head = 1
		}
		if len(d.rest) < head+4 {
			return requests
		}
		size := head + int(binary.BigEndian.Uint32(d.rest[head:]))
		if len(d.rest) < size {
			return requests
		}
		if d.started {
			kind = d.rest[0]
		}
		if text := d.message(kind, d.rest[head+4:size]); text != "" {
			requests = append(requests, text)
		}
		d.rest, d.started = d.rest[size:], true
	}
}

// message returns the request that a message is, "" if it is none.
func (d *postgresDecoder) message(kind byte, body []byte) string {
	fields := strings.SplitN(string(body), "\x00", 3)
	switch kind {
	case 'Q':
		return plain(fields[0])
	case 'P':
		if d.prepared == nil {
			d.prepared = make(map[string]string)
		}
		d.prepared[fields[0]] = plain(fields[1])
		if fields[0] != "" {
			return "PREPARE " + d.prepared[fields[0]]
		}
	case 'B':
		d.bound = d.prepared[fields[1]]
	case 'E':
		return d.bound
	}
	return ""
}

// redisDecoder reads the protocol of Redis.
type redisDecoder struct {
	rest    []byte
	scripts map[string]string // names by hash
	watches bool              // locks that are held for long, for nobody who waits
}

// upkeep are commands that clients send at times, for themselves.
var upkeep = map[string]bool{"HELLO": true, "CLIENT": true, "CLUSTER": true, "COMMAND": true, "INFO": true, "PING": true, "READONLY": true}

func (d *redisDecoder) decode(sent []byte) (requests []string) {
	d.rest = append(d.rest, sent...)
	for {
		args, n := command(d.rest)
		if n == 0 {
			return requests
		}
		d.rest = d.rest[n:]
		switch name := strings.ToUpper(args[0]); {
		case name == "CLIENT" && strings.EqualFold(args[1], "id"): // to redirect the reports of lost locks
			d.watches = true
		case d.watches || upkeep[name]:
		case name == "EVALSHA" && d.scripts[args[1]] != "":
			requests = append(requests, d.scripts[args[1]])
		default:
			requests = append(requests, name)
		}
	}
}

// command returns the first command in b and its size, 0 if it is not complete.
func command(b []byte) (args []string, size int) {
	number := func() int {
		i := bytes.Index(b[size:], []byte("\r\n"))
		if i < 1 {
			return -1
		}
		n, err := strconv.Atoi(string(b[size+1 : size+i]))
		if size += i + 2; err != nil {
			return -1
		}
		return n
	}
	for range max(0, number()) {
		n := number()
		if n < 0 || len(b) < size+n+2 {
			return nil, 0
		}
		args = append(args, string(b[size:size+n]))
		size += n + 2
	}
	if len(args) == 0 {
		return nil, 0
	}
	return args, size
}

// scripts returns the names of the scripts of the locks by their hashes.
func scripts(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("../../lock/redislock/*.lua")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("the scripts of redislock: %v, %v", paths, err)
	}
	names := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		hash := sha1.Sum(text)
		names[hex.EncodeToString(hash[:])] = strings.TrimSuffix(filepath.Base(path), ".lua")
	}
	return names
}
