package wild

import (
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/plugin/dbresolver"
)

// settingKinds are what a program sets, and what plugins do.
var settingKinds = []tried{
	kind[Item]{name: "prefix and singular", row: item, config: naming(schema.NamingStrategy{TablePrefix: "t_", SingularTable: true})},
	kind[Item]{name: "NoLowerCase", row: item, config: naming(schema.NamingStrategy{NoLowerCase: true})},
	kind[Item]{name: "PrepareStmt", row: item, config: with(&gorm.Config{PrepareStmt: true})},
	kind[Item]{name: "TranslateError", row: item, config: with(&gorm.Config{TranslateError: true})},
	kind[Item]{name: "SkipDefaultTransaction", row: item, config: with(&gorm.Config{SkipDefaultTransaction: true})},
	kind[Item]{name: "all of these", row: item, insert: create[Item], update: save[Item], config: with(&gorm.Config{
		PrepareStmt: true, TranslateError: true, SkipDefaultTransaction: true, QueryFields: true, AllowGlobalUpdate: true, DisableNestedTransaction: true,
	})},
	kind[Item]{name: "REPEATABLE READ", on: "postgres", row: item, config: altered("default_transaction_isolation = 'repeatable read'")},
	kind[Item]{name: "SERIALIZABLE", on: "postgres", row: item, config: altered("default_transaction_isolation = 'serializable'")},
	kind[Item]{name: "plugin that wraps connections", row: item, config: with(wrapping(gorm.Config{}))},
	kind[Item]{name: "plugin that wraps connections, SkipDefaultTransaction", row: item, config: with(wrapping(gorm.Config{SkipDefaultTransaction: true}))},
	kind[Item]{name: "replica", row: item, config: replica, insert: create[Item], update: save[Item]},
	kind[Item]{name: "table at run time", row: item, insert: create[Item], update: save[Item],
		scope: func(tx *gorm.DB) *gorm.DB { return tx.Table("items_2026") }, setup: func(e *env) { e.migrate(&Item{}) }},
	kind[Item]{name: "DryRun before", row: item,
		insert: func(tx *gorm.DB, i *Item) error {
			dry := *i
			if err := tx.Session(&gorm.Session{DryRun: true}).Create(&dry).Error; err != nil {
				return err
			}
			return tx.Create(i).Error
		},
		update: func(tx *gorm.DB, i *Item) error {
			dry := *i
			if err := tx.Session(&gorm.Session{DryRun: true}).Save(&dry).Error; err != nil {
				return err
			}
			return tx.Save(i).Error
		}},
	kind[Item]{name: "Unscoped", row: item, insert: func(tx *gorm.DB, i *Item) error { return tx.Unscoped().Create(i).Error },
		update: func(tx *gorm.DB, i *Item) error { return tx.Unscoped().Updates(i).Error }},
}

func with(option gorm.Option) func(*env) gorm.Option {
	return func(*env) gorm.Option { return option }
}

func naming(s schema.NamingStrategy) func(*env) gorm.Option {
	return with(&gorm.Config{NamingStrategy: s})
}

// altered has a setting for new sessions of PostgreSQL.
func altered(setting string) func(*env) gorm.Option {
	return func(e *env) gorm.Option {
		e.t.Helper()
		e.must(e.db.Exec("ALTER DATABASE " + e.db.Migrator().CurrentDatabase() + " SET " + setting).Error)
		return &gorm.Config{}
	}
}

// replica has queries go to another connection, which sees nothing uncommitted.
func replica(e *env) gorm.Option {
	e.t.Helper()
	pool, err := e.open().DB()
	e.must(err)
	second := map[string]gorm.Dialector{
		"mysql":    mysql.New(mysql.Config{Conn: pool}),
		"postgres": postgres.New(postgres.Config{Conn: pool}),
		"sqlite":   sqlite.New(sqlite.Config{Conn: pool}),
	}[e.db.Name()]
	return using{plugin: func(db *gorm.DB) error {
		return db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{second}}))
	}}
}
