// Package ginshop has a gin handler that creates each order once, even if clients repeat the request
// or reach another instance.
package ginshop

import (
	"context"
	"errors"
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
func Routes(g *guard.Guard, db *gorm.DB) http.Handler {
	router := gin.New()
	router.POST("/orders", func(c *gin.Context) { create(c, g, db) })
	return router
}

func create(c *gin.Context, g *guard.Guard, db *gorm.DB) {
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
	switch {
	case err == nil:
		c.JSON(http.StatusCreated, o)
		return
	case errors.Is(err, guard.ErrDuplicate):
		repeat(c, db.WithContext(ctx), o)
		return
	}
	if httpguard.Status(err) >= http.StatusInternalServerError {
		slog.ErrorContext(ctx, "order is not created", "no", o.No, "error", err)
	}
	httpguard.Error(c.Writer, err)
}

// repeat answers a request whose order exists: 200, or 409 if the order has other
// content.
func repeat(c *gin.Context, db *gorm.DB, asked Order) {
	var o Order
	switch err := db.Where(&Order{No: asked.No}).Take(&o).Error; {
	case err != nil:
		slog.ErrorContext(c.Request.Context(), "order is not read", "no", asked.No, "error", err)
		httpguard.Error(c.Writer, err)
	case o.Cents != asked.Cents:
		c.JSON(http.StatusConflict, gin.H{"error": "this number is of another order"})
	default:
		c.JSON(http.StatusOK, o)
	}
}
