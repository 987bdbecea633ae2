// Command shop is nine programs in one, as one is linked faster. Its argument names one.
package main

import (
	"log"
	"os"

	"shop/gormwalk"
	"shop/httpwalk"
	"shop/lockwalk"
	"shop/messageswalk"
	"shop/norediswalk"
	"shop/pgxwalk"
	"shop/readmewalk"
	"shop/redsyncwalk"
	"shop/sqlwalk"
)

var programs = map[string]func(){
	"readme": readmewalk.Walk, "gorm": gormwalk.Walk, "sql": sqlwalk.Walk, "pgx": pgxwalk.Walk, "http": httpwalk.Walk,
	"messages": messageswalk.Walk, "lock": lockwalk.Walk, "redsync": redsyncwalk.Walk, "noredis": norediswalk.Walk,
}

func main() {
	program, ok := programs[os.Args[1]]
	if !ok {
		log.Fatalf("no program %q", os.Args[1])
	}
	program()
}
