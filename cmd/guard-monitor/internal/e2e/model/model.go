// Package model has the tables of the end-to-end tests.
package model

import "github.com/belaygo/belay/dbguard"

// Order is what the insert cases write.
type Order struct {
	ID       uint
	No       string `gorm:"size:64;uniqueIndex"`
	Instance string `gorm:"size:64"`
}

// Stock is what the update case writes.
type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}
