package check_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const root = "../.."

// load reads docker-compose.yml as Compose does, with all profiles.
func load(t *testing.T) *types.Project {
	t.Helper()
	project := loadFiles(t, "docker-compose.yml")
	if len(project.Services) != 13 {
		t.Fatalf("%d services: %v", len(project.Services), project.ServiceNames())
	}
	return project
}

func loadFiles(t *testing.T, names ...string) *types.Project {
	t.Helper()
	var files []types.ConfigFile
	for _, name := range names {
		files = append(files, types.ConfigFile{Filename: filepath.Join(root, name)})
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: files,
	}, loader.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// Without a broker nothing is left of it, and guard-monitor takes posted events.
func TestNoBroker(t *testing.T) {
	project := loadFiles(t, "docker-compose.yml", "deploy/compose/no-broker.yml")
	monitor, there := project.Services["guard-monitor"]
	_, broker := project.Services["rabbitmq"]
	_, awaited := monitor.DependsOn["rabbitmq"]
	url, asked := monitor.Environment["BELAY_AMQP_URL"]
	if !there || broker || awaited || asked || len(project.Services) != 12 {
		t.Errorf("RabbitMQ: a service %t, awaited %t, asked %t (%v); services %v", broker, awaited, asked, url, project.ServiceNames())
	}
	token := monitor.Environment["BELAY_INGEST_TOKEN"]
	if token == nil || len(*token) < 16 || !strings.Contains(read(t, "deploy/compose/guard-monitor.yaml"), "token: ${BELAY_INGEST_TOKEN}\n") {
		t.Errorf("the token of ingest is %v", token)
	}
}

// Nothing is published beyond loopback, everything that stays has a health
// check, and every file and service that is named is there.
func TestServices(t *testing.T) {
	project := load(t)
	published := make(map[string]string)
	for name, s := range project.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %d on %q", name, p.Target, p.HostIP)
			}
			if other, ok := published[p.Published]; ok {
				t.Errorf("%s and %s publish %s", name, other, p.Published)
			}
			published[p.Published] = name
		}
		if s.HealthCheck == nil && name != "redis-cluster" { // it ends
			t.Errorf("%s has no health check", name)
		}
		if s.Image != "" && !strings.Contains(s.Image, ":") {
			t.Errorf("%s: image %s without a version", name, s.Image)
		}
		for other := range s.DependsOn {
			if _, ok := project.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, other)
			}
		}
		if owner, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok && (owner != "network" || len(s.Ports) > 0) {
			t.Errorf("%s shares the network of %s and publishes %v", name, owner, s.Ports)
		}
		checkVolumes(t, project, name, s)
	}
	for _, port := range []string{"7001", "7002", "7003", "7004", "7005", "7006", "3306", "5672", "15672", "9440", "9090", "3000"} {
		if published[port] == "" {
			t.Errorf("nobody publishes %s", port)
		}
	}
}

func checkVolumes(t *testing.T, project *types.Project, name string, s types.ServiceConfig) {
	t.Helper()
	for _, v := range s.Volumes {
		switch v.Type {
		case types.VolumeTypeBind:
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s mounts %s (read-only: %v): %v", name, v.Source, v.ReadOnly, err)
			}
		case types.VolumeTypeVolume:
			if _, ok := project.Volumes[v.Source]; !ok {
				t.Errorf("%s mounts the volume %q, which is not there", name, v.Source)
			}
		default:
			t.Errorf("%s mounts %s as %s", name, v.Source, v.Type)
		}
	}
}

// The nodes listen on the ports under which the creator, guard-monitor and the
// host ask for them.
func TestCluster(t *testing.T) {
	project := load(t)
	var addresses []string
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		s, port := project.Services["redis-"+n], "700"+n
		addresses = append(addresses, "127.0.0.1:"+port)
		if want := []string{"redis-server", "/etc/redis.conf", "--port", port}; !slices.Equal(s.Command, want) {
			t.Errorf("redis-%s runs %q", n, s.Command)
		}
		if want := []string{"CMD", "redis-cli", "-p", port, "ping"}; !slices.Equal(s.HealthCheck.Test, want) {
			t.Errorf("redis-%s is asked by %q", n, s.HealthCheck.Test)
		}
		published := false
		for _, p := range project.Services["network"].Ports {
			published = published || p.Published == port && strconv.Itoa(int(p.Target)) == port
		}
		if !published {
			t.Errorf("%s is not published as itself", port)
		}
		for _, name := range []string{"redis-" + n, "redis-cluster", "guard-monitor"} {
			if mode := project.Services[name].NetworkMode; mode != "service:network" {
				t.Errorf("%s has the network %q", name, mode)
			}
		}
	}
	if have := project.Services["redis-cluster"].Command[2:]; !slices.Equal(have, addresses) {
		t.Errorf("redis-cluster makes a cluster of %q", have)
	}
	monitor := read(t, "deploy/compose/guard-monitor.yaml")
	if want := "nodes: [" + strings.Join(addresses, ", ") + "]\n"; !strings.Contains(monitor, want) {
		t.Errorf("guard-monitor does not watch %s", want)
	}
}

// The servers are set as scripts/stack sets them, which the tests run on.
func TestSettings(t *testing.T) {
	project := load(t)
	conf := directives(t, "deploy/compose/redis.conf")
	// What a stack of processes side by side needs, and a container does not.
	own := []string{"bind", "port", "cluster-port"}
	compare(t, "redis.conf", flags(t, "scripts/lib/redis.sh", "redis-server", own), conf)
	for name, want := range map[string]string{"cluster-announce-ip": "127.0.0.1", "protected-mode": "no"} {
		if conf[name] != want {
			t.Errorf("redis.conf: %s is %q", name, conf[name])
		}
	}

	own = []string{"init-file", "bind-address", "port", "socket", "pid-file"}
	have := make(map[string]string)
	for _, argument := range project.Services["mysql"].Command {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		have[name] = value
	}
	compare(t, "mysql", flags(t, "scripts/lib/database.sh", `launch "$1" "${program[@]}"`, own), have)
}

func compare(t *testing.T, what string, stack, have map[string]string) {
	t.Helper()
	if len(stack) < 5 {
		t.Fatalf("only %v found in scripts/stack", stack)
	}
	for name, want := range stack {
		if value, ok := have[name]; !ok || value != want {
			t.Errorf("%s: %s is %q, scripts/stack has %q", what, name, value, want)
		}
	}
}

// flags are those of the command that begins with start in a script, which goes
// on over lines that end in a backslash.
func flags(t *testing.T, script, start string, without []string) map[string]string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, script), start)
	if !ok {
		t.Fatalf("%s does not start %s", script, start)
	}
	command := regexp.MustCompile(`(?s)^(?:[^\n]*\\\n)*[^\n]*`).FindString(rest)
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`--([a-z-]+)(?:[= ]('[^']*'|"[^"]*"|[^\s\\-][^\s\\]*))?`).FindAllStringSubmatch(command, -1) {
		if !slices.Contains(without, m[1]) {
			found[m[1]] = strings.Trim(m[2], `'"`)
		}
	}
	return found
}

func directives(t *testing.T, file string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(read(t, file)))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if ok && !strings.HasPrefix(name, "#") {
			found[name] = strings.Trim(value, `"`)
		}
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
