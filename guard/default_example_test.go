package guard_test

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/guard"
)

// A program with one Guard makes it the default once, and hands none around.
func ExampleSetDefault() {
	ctx := context.Background()
	fmt.Println(guard.Apply(ctx, "sale:1", guard.Insert(&Sale{No: "1"})))

	db, done := exampleDB(&Sale{})
	defer done()
	g, closeGuard := exampleGuard(db)
	defer closeGuard()
	guard.SetDefault(g)
	defer guard.SetDefault(nil)

	fmt.Println(guard.Apply(ctx, "sale:1", guard.Insert(&Sale{No: "1"})))
	// Output:
	// guard: no default guard, call SetDefault first
	// <nil>
}
