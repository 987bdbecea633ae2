package watch

import (
	"strconv"
	"strings"
	"time"
)

// look is what one node said in one round.
type look struct {
	at      time.Time // when it had answered, or had failed to
	took    time.Duration
	err     error
	refused bool // no process listens at its address
	denied  bool // it answers, but forbids a query

	info    map[string]string
	clients []client // queried only before an entry that keys were removed
	view    []member // of a Redis Cluster
	serves  bool
}

// parseInfo reads the lines "name:value" of INFO.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(name, "#") {
			info[name] = value
		}
	}
	return info
}

func (l *look) number(name string) int64 {
	n, _ := strconv.ParseInt(l.info[name], 10, 64)
	return n
}

// keys sums up the databases, as in "db0:keys=3,expires=1,avg_ttl=9".
func (l *look) keys() (sum int64) {
	for name, value := range l.info {
		if strings.HasPrefix(name, "db") {
			sum += stat(value, "keys")
		}
	}
	return sum
}

// me is the node's own line in its view.
func (l *look) me() (member, bool) {
	for _, m := range l.view {
		if m.myself {
			return m, true
		}
	}
	return member{}, false
}

// master is the address of a replica's master. INFO has its IP, also where its name is
// preferred.
func (l *look) master() string {
	me, _ := l.me()
	for _, m := range l.view {
		if m.id == me.of {
			return m.addr
		}
	}
	return join(l.info["master_host"], l.info["master_port"])
}

// stat reads one number of a line such as "calls=3,usec=9,failed_calls=1".
func stat(line, name string) int64 {
	for field := range strings.SplitSeq(line, ",") {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
