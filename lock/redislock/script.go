package redislock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed acquire.lua
	acquireSrc string
	//go:embed renew.lua
	renewSrc string
	//go:embed release.lua
	releaseSrc string
	//go:embed inspect.lua
	inspectSrc string

	acquireScript = newScript("acquire", acquireSrc)
	renewScript   = newScript("renew", renewSrc)
	releaseScript = newScript("release", releaseSrc)
	inspectScript = newScript("inspect", inspectSrc)
)

// A script is a Lua script. Its keys are the lock and, of some, the lock's line. It follows
// the rules of proxies that check its text: each command is a literal, and each key a KEYS[n].
type script struct {
	name, src, sha string

	bySource, byHash any // src and sha as arguments, made once
}

func newScript(name, src string) *script {
	s := &script{name: name, src: src, sha: redis.NewScript(src).Hash()}
	s.bySource, s.byHash = s.src, s.sha
	return s
}

// question reports whether s only reads, so that it may be sent again after it was
// executed.
func (s *script) question() bool { return s == inspectScript }
