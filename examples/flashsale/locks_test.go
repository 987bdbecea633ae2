package main

import (
	"fmt"
	"sync"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard/guardtest"
)

func sqliteDialect(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn})
}

// No lock holds, and no more is sold than there is, to nobody twice.
func TestNothingIsSoldTwiceWithoutLocks(t *testing.T) {
	g := guardtest.Open(t, sqliteDialect, &Sale{}, &Item{})
	if err := g.DB.Create(&Item{ID: 1, Left: 3}).Error; err != nil {
		t.Fatal(err)
	}
	g.LoseAll(true)
	var crowd sync.WaitGroup
	var mu sync.Mutex
	bought := make(map[string]int)
	for n := range 4 {
		shop := g.Peer(t, g.DB)
		crowd.Go(func() {
			for visit := range 6 {
				buyer := fmt.Sprint("buyer-", (n+visit)%5)
				if buy(t.Context(), shop, 1, buyer) == nil {
					mu.Lock()
					bought[buyer]++
					mu.Unlock()
				}
			}
		})
	}
	crowd.Wait()
	item, sold := Item{}, int64(0)
	if err := g.DB.Take(&item, 1).Error; err != nil {
		t.Fatal(err)
	}
	if err := g.DB.Model(&Sale{}).Count(&sold).Error; err != nil || sold != int64(3-item.Left) || item.Left < 0 || sold == 0 {
		t.Errorf("%d sold, %d left of 3, %v", sold, item.Left, err)
	}
	for buyer, n := range bought {
		if n > 1 {
			t.Errorf("%s was told %d times that it has bought", buyer, n)
		}
	}
}
