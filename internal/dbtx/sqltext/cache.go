package sqltext

import "sync"

// A text is SQL as it is sent. Databases differ in how they read it.
type text struct {
	query   string
	grammar Grammar
}

// How many texts are remembered, and of what length. When there are more, all are
// forgotten: gorm's texts recur, those that contain values do not.
const (
	maxTexts   = 512
	maxTextLen = 2048
)

// A cache remembers the statements of texts, because gorm sends each text many times.
type cache struct {
	mu    sync.RWMutex
	texts map[text][]Statement
}

var known cache

func (c *cache) statements(t text) []Statement {
	if len(t.query) > maxTextLen {
		return split(t)
	}
	c.mu.RLock()
	found, ok := c.texts[t]
	c.mu.RUnlock()
	if ok {
		return found
	}
	found = split(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil || len(c.texts) >= maxTexts {
		c.texts = make(map[text][]Statement)
	}
	c.texts[t] = found
	return found
}
