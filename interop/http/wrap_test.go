package http_test

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
)

// echoWrap makes a middleware of echo. A handler's error is answered inside: echo itself does so behind
// all middlewares, when an answer without an error has been committed.
func echoWrap(guarded middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request, outer := c.Request(), c.Response()
			defer func() { // also if the handler panics: echo answers that by the outer writer
				c.SetRequest(request)
				c.SetResponse(outer)
			}()
			guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.SetRequest(r)
				c.SetResponse(echo.NewResponse(w, c.Echo()))
				if err := next(c); err != nil {
					c.Error(err)
				}
			})).ServeHTTP(outer, request)
			return nil
		}
	}
}

// ginWrap makes a middleware of gin, whose writer has methods of its own: that of httpguard
// takes its place while the handlers run. Errors that they have noted and not answered are a 500:
// a middleware that answers them belongs inside.
func ginWrap(guarded middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		request, outer := c.Request, c.Writer
		defer func() { // also if a handler panics: gin answers that by the outer writer
			c.Request, c.Writer = request, outer
			c.Abort() // the handlers have run, or are not to
		}()
		guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner := &ginWriter{outer, w, http.StatusOK, -1}
			c.Request, c.Writer = r, inner
			before := len(c.Errors)
			c.Next()
			if len(c.Errors) > before && inner.status < http.StatusBadRequest {
				inner.WriteHeader(http.StatusInternalServerError)
			}
			inner.WriteHeaderNow()
		})).ServeHTTP(outer, request)
	}
}

// A ginWriter is the writer w with the methods of gin's.
type ginWriter struct {
	gin.ResponseWriter
	w            http.ResponseWriter
	status, size int // size is -1 until the status is written
}

func (w *ginWriter) Header() http.Header { return w.w.Header() }
func (w *ginWriter) Status() int         { return w.status }
func (w *ginWriter) Size() int           { return w.size }
func (w *ginWriter) Written() bool       { return w.size >= 0 }
func (w *ginWriter) Flush()              { w.WriteHeaderNow() }

// WriteHeader sets the status, which may be set again until it is written.
func (w *ginWriter) WriteHeader(status int) {
	if status > 0 && !w.Written() { // -1 leaves it as it is
		w.status = status
	}
}

func (w *ginWriter) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.w.WriteHeader(w.status)
	}
}

func (w *ginWriter) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.w.Write(p)
	w.size += n
	return n, err
}

func (w *ginWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Hijack would reach the client past the Guard.
func (w *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}
