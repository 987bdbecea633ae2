package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// work is a worker process: a contender of its own, told over stdin what to do.
// All that a worker says is one line on stdout each:
//
//	worker:  ready
//	asked:   run {job}
//	worker:  done {outcome}      or: failed reason
//
// It may be asked again, and ends with its stdin. A worker for a library in
// another language speaks the same words; its arguments are the addresses of
// the cluster, one each.
func work(addrs, args []string) error {
	if len(args) != 1 {
		return errors.New("worker takes the name of a contender")
	}
	chosen, err := choose(args[0])
	if err != nil {
		return err
	}
	if chosen[0].open == nil {
		return fmt.Errorf("%s: %s", chosen[0].name, chosen[0].absent)
	}
	l, err := chosen[0].open(addrs)
	if err != nil {
		return fmt.Errorf("open %s: %w", chosen[0].name, err)
	}
	defer l.close()
	return serve(l, os.Stdin, os.Stdout)
}

func serve(l locker, in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		o, err := perform(l, lines.Text())
		if err != nil {
			fmt.Fprintln(out, "failed", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		answer, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode outcome: %w", err)
		}
		fmt.Fprintf(out, "done %s\n", answer)
	}
	return lines.Err()
}

func perform(l locker, line string) (outcome, error) {
	text, ok := strings.CutPrefix(line, "run ")
	if !ok {
		return outcome{}, fmt.Errorf("unknown request %q", line)
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return outcome{}, fmt.Errorf("decode job: %w", err)
	}
	switch j.Workload {
	case ownKey, oneKey:
		return runCallers(l, j)
	case tryOneKey:
		return runBursts(l, j), nil
	}
	return outcome{}, fmt.Errorf("unknown workload %q", j.Workload)
}
