package dbguard

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/gormplugin"
	"github.com/belaygo/belay/internal/rowversion"
)

const pluginName = "belay:dbguard"

// plugin is the gorm plugin that Install adds.
type plugin struct{}

// Install adds callbacks to db. An update or delete of a loaded row that matches no row
// then returns a *ConflictError, wherever it runs; models in memory get their new versions.
// guard.New calls it. It sends nothing to the database. Installing twice is harmless, also by
// several goroutines.
func Install(db *gorm.DB) error {
	if db == nil {
		return errors.New("dbguard: db is nil")
	}
	if _, ok := dialect.Of(db.Name()); !ok {
		return fmt.Errorf("dbguard: unsupported database: %s", db.Name())
	}
	return gormplugin.Add(db, plugin{})
}

// Name implements gorm.Plugin.
func (plugin) Name() string { return pluginName }

// Initialize implements gorm.Plugin. Each callback is registered between two others:
// gorm puts a callback that is only after another at the end, behind the COMMIT.
// Initializing twice is harmless.
func (plugin) Initialize(db *gorm.DB) error {
	cb := db.Callback()
	if cb.Update().Get("belay:written") != nil {
		return nil
	}
	return errors.Join(
		cb.Create().Before("gorm:create").Register("belay:version", rowversion.FirstOfUnscoped),
		cb.Update().After("gorm:update").Before("gorm:save_after_associations").Register("belay:written", written),
		cb.Delete().After("gorm:delete").Before("gorm:after_delete").Register("belay:written", written),
	)
}
