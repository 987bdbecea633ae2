package dbtx

import (
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/gormplugin"
)

const pluginName = "belay:dbtx"

// plugin is the gorm plugin that Install adds.
type plugin struct{ databases }

// Install prepares db for guarded transactions, and installs dbguard. It sends nothing to
// the database. Installing twice is harmless.
func Install(db *gorm.DB) error {
	if err := dbguard.Install(db); err != nil {
		return err
	}
	return gormplugin.Add(db, new(plugin))
}

// Name implements gorm.Plugin.
func (*plugin) Name() string { return pluginName }

// Initialize implements gorm.Plugin. The callbacks of dbguard come first: a second db that
// is opened with the same gorm.Config initializes its plugins in any order.
func (p *plugin) Initialize(db *gorm.DB) error {
	if below, ok := db.Plugins["belay:dbguard"]; ok {
		if err := below.Initialize(db); err != nil {
			return err
		}
	}
	cb := db.Callback()
	return errors.Join(
		cb.Create().Before("*").Register("belay:inside", inside),
		cb.Query().Before("*").Register("belay:inside", inside),
		cb.Update().Before("*").Register("belay:inside", inside),
		cb.Delete().Before("*").Register("belay:inside", inside),
		cb.Row().Before("*").Register("belay:inside", insideRow),
		cb.Raw().Before("*").Register("belay:inside", inside),

		cb.Create().Before("gorm:begin_transaction").Register("belay:join", join),
		cb.Update().Before("gorm:begin_transaction").Register("belay:join", join),
		cb.Delete().Before("gorm:begin_transaction").Register("belay:join", join),
		// Each is between two others: gorm puts a callback that is only after another
		// at the end, behind the COMMIT.
		cb.Create().After("gorm:begin_transaction").Before("gorm:before_create").Register("belay:joined", joined),
		cb.Update().After("gorm:begin_transaction").Before("gorm:before_update").Register("belay:joined", joined),
		cb.Delete().After("gorm:begin_transaction").Before("gorm:before_delete").Register("belay:joined", joined),

		cb.Create().Before("gorm:create").Register("belay:before", beforeInsert),
		cb.Create().After("gorm:create").Before("gorm:save_after_associations").Register("belay:inserted", inserted),
		cb.Query().After("gorm:query").Before("gorm:preload").Register("belay:loaded", loaded),
		// dbguard's own is between noted and judged.
		cb.Update().Before("gorm:update").Register("belay:before", beforeWrite),
		cb.Update().After("gorm:update").Before("belay:written").Register("belay:noted", noted),
		cb.Update().After("belay:written").Before("gorm:save_after_associations").Register("belay:judged", judged),
		cb.Delete().Before("gorm:delete").Register("belay:before", beforeWrite),
		cb.Delete().After("gorm:delete").Before("belay:written").Register("belay:noted", noted),
		cb.Delete().After("belay:written").Before("gorm:after_delete").Register("belay:judged", judged),

		cb.Create().After("*").Register("belay:learn", learn),
		cb.Query().After("*").Register("belay:learn", learn),
		cb.Update().After("*").Register("belay:learn", learn),
		cb.Delete().After("*").Register("belay:learn", learn),
		cb.Row().After("*").Register("belay:learn", learn),
		cb.Raw().After("*").Register("belay:learn", learn),
		cb.Raw().After("*").Register("belay:isolation", p.isolation),
	)
}
