package http_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
)

var errDeclined = errors.New("declined")

// failing are sites whose handler charges, and then fails as handlers of its router do. The router
// itself answers for it.
var failing = map[string]func(guarded middleware) http.Handler{
	"echo": func(guarded middleware) http.Handler {
		e := echo.New()
		e.POST("/payments/:id", func(c echo.Context) error {
			if _, err := charge(c.Request().Context()); err != nil {
				return err
			}
			return echo.NewHTTPError(http.StatusPaymentRequired, errDeclined.Error())
		}, echoWrap(guarded))
		return e
	},
	"gin": func(guarded middleware) http.Handler {
		engine := ginEngine()
		engine.POST("/payments/:id", ginWrap(guarded), ginErrors, ginFails)
		return engine
	},
	"gin with AbortWithError": func(guarded middleware) http.Handler {
		engine := ginEngine()
		engine.POST("/payments/:id", ginWrap(guarded), func(c *gin.Context) {
			_, err := charge(c.Request.Context())
			_ = c.AbortWithError(http.StatusPaymentRequired, errors.Join(err, errDeclined))
		})
		return engine
	},
}

func ginEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	return gin.New()
}

// ginErrors answers the errors that handlers have noted.
func ginErrors(c *gin.Context) {
	if c.Next(); len(c.Errors) > 0 && !c.Writer.Written() {
		c.JSON(http.StatusPaymentRequired, gin.H{"message": c.Errors.Last().Error()})
	}
}

func ginFails(c *gin.Context) {
	_, err := charge(c.Request.Context())
	_ = c.Error(errors.Join(err, errDeclined))
}

// TestFailedHandler: a handler that returns or notes an error before it has answered is rolled back, and its error
// is answered.
func TestFailedHandler(t *testing.T) {
	for name, router := range failing {
		t.Run(name, func(t *testing.T) { wantFailed(t, router, http.StatusPaymentRequired) })
	}
}

// TestUnansweredError: an error of gin that no handler answers inside is a 500.
func TestUnansweredError(t *testing.T) {
	for name, handlers := range map[string]func(guarded gin.HandlerFunc) []gin.HandlerFunc{
		"nobody": func(guarded gin.HandlerFunc) []gin.HandlerFunc { return []gin.HandlerFunc{guarded, ginFails} },
		"outside": func(guarded gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{ginErrors, guarded, ginFails}
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, func(guarded middleware) http.Handler {
				engine := ginEngine()
				engine.POST("/payments/:id", handlers(ginWrap(guarded))...)
				return engine
			}, http.StatusInternalServerError)
		})
	}
}

// wantFailed pays twice: nothing is charged, stored or replayed.
func wantFailed(t *testing.T, router func(guarded middleware) http.Handler, status int) {
	t.Helper()
	pay, left := open(t, router)
	for n := range 2 {
		if got := pay(); got.code != status || got.replayed {
			t.Errorf("answer %d is %+v, want %d, and no replay", n+1, got, status)
		}
	}
	if cents := left(); cents != 1000 {
		t.Errorf("%d cents are left, want 1000", cents)
	}
}

// TestPanicInRouter: the handler panics, and the router answers that outside of the Guard.
func TestPanicInRouter(t *testing.T) {
	for name, router := range map[string]func(guarded middleware) http.Handler{
		"gin": func(guarded middleware) http.Handler {
			engine := ginEngine()
			engine.Use(gin.RecoveryWithWriter(io.Discard))
			engine.POST("/payments/:id", ginWrap(guarded), func(c *gin.Context) {
				_, err := charge(c.Request.Context())
				panic(errors.Join(err, errDeclined))
			})
			return engine
		},
		"echo": func(guarded middleware) http.Handler {
			e := echo.New()
			e.Use(echoRecover)
			e.POST("/payments/:id", func(c echo.Context) error {
				_, err := charge(c.Request().Context())
				panic(errors.Join(err, errDeclined))
			}, echoWrap(guarded))
			return e
		},
	} {
		t.Run(name, func(t *testing.T) { wantFailed(t, router, http.StatusInternalServerError) })
	}
}

// echoRecover answers a panic as the middleware Recover of echo does.
func echoRecover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer func() {
			if v := recover(); v != nil {
				c.Error(fmt.Errorf("%v", v))
			}
		}()
		return next(c)
	}
}
