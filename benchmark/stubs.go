package main

import "context"

func runSustained(context.Context, []string) error { return nil }
func runCost(context.Context, []string) error      { return nil }
