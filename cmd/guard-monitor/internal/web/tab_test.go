package web_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/belaygo/belay/internal/teststack"
)

// patience bounds every wait; it is reached only when something is broken.
const patience = time.Minute

// tab is a page of a real browser.
type tab struct {
	tb  testing.TB
	ctx context.Context
}

// browse opens an empty tab of a browser of its own, or skips aloud.
func browse(tb testing.TB) *tab {
	tb.Helper()
	path := teststack.Program(tb, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("lang", "en-US"), chromedp.WSURLReadTimeout(patience))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	tb.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		cancel()
		end()
	})
	t := &tab{tb, ctx}
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the first context it runs in
		tb.Fatalf("start chromium: %v", err)
	}
	return t
}

func (t *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.tb.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](t *tab, js string) T {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.tb.Fatal(err)
	}
	return v
}

// until waits until a JavaScript expression is true.
func (t *tab) until(js string) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// An error is not the end: the page may be about to change.
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if err == nil && is {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.tb.Fatalf("not true: %s: %v\n%.2000s", js, err, eval[string](t, "document.body.innerText"))
		}
	}
}

// hurry has the script of the pages do at once what it does every so often. It
// counts that in ticks.
func (t *tab) hurry() {
	t.tb.Helper()
	if _, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{
			const every = setInterval;
			window.ticks = 0;
			window.setInterval = (f) => every(() => { window.ticks++; f(); }, 50);
		}`,
	}); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tab) shows(text string) {
	t.tb.Helper()
	t.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// shot keeps a picture for people, outside the repository.
func (t *tab) shot(name string) {
	t.tb.Helper()
	dir := os.Getenv("BELAY_WEB_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.tb.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tab) width(px int64, dark bool) {
	t.tb.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	t.run(chromedp.EmulateViewport(px, 900))
	if _, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		t.tb.Fatal(err)
	}
}
