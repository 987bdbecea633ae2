// Package gormplugin adds Belay's plugins to a gorm.DB.
package gormplugin

import (
	"fmt"
	"sync"

	"gorm.io/gorm"
)

// gorm guards neither its map of plugins nor its callbacks, and two Belays of one program may be opened
// on one gorm.DB at a time.
var mu sync.Mutex

// Add adds a plugin unless one of its name is there.
func Add(db *gorm.DB, p gorm.Plugin) error {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := db.Plugins[p.Name()]; ok {
		return nil
	}
	if err := db.Use(p); err != nil {
		return fmt.Errorf("install dbguard: %w", err)
	}
	return nil
}
