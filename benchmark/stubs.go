package main

import "context"

func runCost(context.Context, []string) error { return nil }
