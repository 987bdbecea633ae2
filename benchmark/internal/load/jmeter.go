package load

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

const jmeterHome = "/usr/share/jmeter" // of Debian's package

// A JMeter sends requests by Apache JMeter, one thread per request.
type JMeter struct {
	Dir   string                             // for its files
	Root  string                             // of the repository, which has the test plan
	Total func(context.Context) (int, error) // answers of all instances since they were started
	Ready func()                             // called before it is started

	before int // answers before the run that runs
}

// FindJMeter returns an error if JMeter, or what it needs, is not installed.
func FindJMeter() error {
	_, compiler := exec.LookPath("javac")
	_, java := exec.LookPath("java")
	_, http := os.Stat(jmeterHome + "/lib/ext/ApacheJMeter_http.jar")
	if errors.Join(compiler, java, http) != nil {
		return errors.New("jmeter is missing: apt-get install --no-install-recommends jmeter jmeter-http default-jdk-headless")
	}
	return nil
}

// JMeterVersion is that of Debian's package; "" if it can't be found out.
func JMeterVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${Version}", "jmeter").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// classPath is where Debian keeps JMeter's classes.
func classPath() string {
	var all []string
	for _, folder := range []string{"bin", "lib", "lib/ext"} {
		jars, _ := filepath.Glob(filepath.Join(jmeterHome, folder, "*.jar"))
		all = append(all, jars...)
	}
	return strings.Join(all, ":")
}

// Answered is how many answers have come.
func (j *JMeter) Answered(ctx context.Context) (int, error) {
	n, err := j.Total(ctx)
	return n - j.before, err
}

// Run sends all requests at once. They go to one address.
func (j *JMeter) Run(ctx context.Context, requests []Request) ([]Sample, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	var err error
	if j.before, err = j.Total(ctx); err != nil {
		return nil, err
	}
	plan := filepath.Join(j.Dir, "requests.csv")
	crowd, err := writePlan(plan, requests)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(requests[0].Addr)
	if err != nil {
		return nil, err
	}
	results := filepath.Join(j.Dir, "results.jtl")
	if err := os.RemoveAll(results); err != nil { // else it would be appended to
		return nil, err
	}
	j.Ready()
	if err := j.run(ctx, []string{
		"-n", "-t", filepath.Join(j.Root, "benchmark", "jmeter", "table1.jmx"), "-l", results,
		"-j", filepath.Join(j.Dir, "jmeter.log"),
		"-Jhost=" + host, "-Jport=" + port, "-Jusers=" + strconv.Itoa(len(requests)), "-Jplan=" + plan, "-Jtogether=" + strconv.Itoa(crowd),
		"-Jsample_variables=answer", "-Jjmeter.save.saveservice.output_format=csv",
		"-Jjmeter.save.saveservice.print_field_names=true", "-Jjmeter.save.saveservice.timestamp_format=ms",
		"-Jjmeter.save.saveservice.assertion_results_failure_message=true",
	}); err != nil {
		return nil, err
	}
	file, err := os.Open(results) //nolint:gosec // of this run
	if err != nil {
		return nil, fmt.Errorf("read jmeter's results: %w", err)
	}
	defer file.Close()
	return parseResults(file)
}

func (j *JMeter) run(ctx context.Context, args []string) error {
	start := []string{"-Djmeter.home=" + jmeterHome, "-cp", classPath(), filepath.Join(j.Root, "benchmark", "jmeter", "Start.java")}
	cmd := exec.CommandContext(ctx, "java", append(start, args...)...) //nolint:gosec // jmeter
	cmd.Dir = j.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("jmeter: %w\n%s", errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	return nil
}

// writePlan writes what the threads send: a path, whether to wait for the
// accident first, and whether to send together with the crowd. It returns how
// large that is.
func writePlan(path string, requests []Request) (crowd int, err error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, r := range requests {
		waits := r.After != nil
		if !waits {
			crowd++
		}
		_ = w.Write([]string{r.Path, strconv.FormatBool(waits), strconv.FormatBool(!waits)})
	}
	w.Flush()
	return crowd, os.WriteFile(path, b.Bytes(), 0o600)
}

// requestLabel is the name of the measured requests in the test plan.
const requestLabel = "request"

// parseResults reads JMeter's table of samples.
func parseResults(in io.Reader) (samples []Sample, err error) {
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("read jmeter's results: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	at := make(map[string]int)
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, name := range []string{"timeStamp", "elapsed", "label", "responseCode", "success", "answer"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("jmeter's results have no column %s", name)
		}
	}
	for _, row := range rows[1:] {
		if row[at["label"]] != requestLabel {
			continue
		}
		s, err := parseSample(func(column string) string { return row[at[column]] })
		if err != nil {
			return nil, fmt.Errorf("read jmeter's results: %w", err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

func parseSample(cell func(column string) string) (s Sample, err error) {
	began, err1 := strconv.ParseInt(cell("timeStamp"), 10, 64)
	elapsed, err2 := strconv.ParseInt(cell("elapsed"), 10, 64)
	s.At, s.Latency = time.UnixMilli(began), time.Duration(elapsed)*time.Millisecond
	status, _ := strconv.Atoi(cell("responseCode")) // 0: there was no answer
	s.Answer = checked(status, fmt.Appendf(nil, `{"result":%q}`, cell("answer")))
	if cell("success") != "true" && s.Result != shop.Failed {
		s.Answer = shop.Answer{Result: shop.Failed, Error: "jmeter's assertion failed"}
	}
	return s, errors.Join(err1, err2)
}
