// Package ginshop has a gin handler that creates each order once, even if clients repeat the request
// or reach another instance.
package ginshop

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
)

// Order is created once for its number, which the client chooses.
type Order struct {
	ID    uint   `json:"id"`
	No    string `gorm:"size:64;not null;uniqueIndex" json:"no" binding:"required,max=64,excludesall={}"` // braces are for a lock key's hash tag
	Cents int64  `json:"cents" binding:"gt=0"`
}

// Routes returns the shop's handler: POST /orders.
func Routes(g *guard.Guard) http.Handler {
	router := gin.New()
	router.POST("/orders", func(c *gin.Context) { create(c, g) })
	return router
}

func create(c *gin.Context, g *guard.Guard) {
	var o Order
	if err := c.ShouldBindJSON(&o); err != nil {
		c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	o.ID = 0
	ctx := c.Request.Context() // not c, which gin uses for another request afterwards
	err := g.Do(ctx, "order:"+o.No, func(_ context.Context, tx *gorm.DB) error {
		return tx.Create(&o).Error
	}, guard.Protects(&Order{No: o.No}), guard.Wait(2*time.Second))
	if err == nil {
		c.JSON(http.StatusCreated, o)
		return
	}
	if httpguard.Status(err) >= http.StatusInternalServerError {
		slog.ErrorContext(ctx, "order is not created", "no", o.No, "error", err)
	}
	httpguard.Error(c.Writer, err) // 200 for a repeat
}
