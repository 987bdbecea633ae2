package load

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

const limit = 30 * time.Second

// serve answers every operation with f, and everything else with 200.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /", f)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestChecked(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   shop.Result
	}{
		{200, `{"result":"done"}`, shop.Done},
		{409, `{"result":"busy"}`, shop.Busy},
		{409, `{"result":"intercepted"}`, shop.Intercepted},
		{503, `{"result":"error","error":"x"}`, shop.Failed},
		{200, `{"result":"busy"}`, shop.Failed},
		{409, `{"result":"done"}`, shop.Failed},
		{409, `{}`, shop.Failed},
		{200, `done`, shop.Failed},
		{502, `<html>`, shop.Failed},
	} {
		if got := checked(tc.status, []byte(tc.body)); got.Result != tc.want {
			t.Errorf("status %d, body %s: %q, want %q", tc.status, tc.body, got.Result, tc.want)
		}
	}
}

func TestBurstIsAllAtOnce(t *testing.T) {
	const users = 50
	var inside sync.WaitGroup
	inside.Add(users) // nobody is answered before all are there
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		inside.Done()
		inside.Wait()
		_, _ = w.Write([]byte(`{"result":"done"}`))
	})
	requests := make([]Request, users)
	for i := range requests {
		requests[i] = Request{Addr: addr, Path: "/"}
	}
	b := &Burst{Limit: limit}
	samples, err := b.Run(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if s.Result != shop.Done || s.Latency <= 0 {
			t.Fatalf("sample %+v", s)
		}
	}
	if n, _ := b.Answered(t.Context()); n != users {
		t.Errorf("%d answered, want %d", n, users)
	}
}

func TestBurstHoldsBackWhatComesAfter(t *testing.T) {
	first, after := make(chan struct{}), make(chan struct{})
	var order []string
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		order = append(order, r.URL.Path)
		if r.URL.Path == "/first" {
			close(first)
		}
		_, _ = w.Write([]byte(`{"result":"done"}`))
	})
	go func() {
		<-first
		close(after)
	}()
	_, err := (&Burst{Limit: limit}).Run(t.Context(), []Request{{addr, "/second", after}, {addr, "/first", nil}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "/first /second" {
		t.Errorf("order %s", got)
	}
}

func TestBurstEndsWithItsContext(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"result":"done"}`)) })
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan struct{})
	b := &Burst{Limit: limit, Ready: cancel}
	if _, err := b.Run(ctx, []Request{{addr, "/", never}}); err == nil {
		t.Error("no error")
	}
}

func TestBurstCountsClosedConnectionsAsErrors(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = w.Write([]byte(`{"result":"done"}`))
	})
	samples, err := (&Burst{Limit: limit}).Run(t.Context(), []Request{{Addr: addr, Path: "/"}})
	if err != nil || samples[0].Result != shop.Failed || !strings.Contains(samples[0].Error, "closes the connection") {
		t.Errorf("samples %+v, %v", samples, err)
	}
}

func TestBurstWithoutServer(t *testing.T) {
	_, err := (&Burst{Limit: limit}).Run(t.Context(), []Request{{Addr: "127.0.0.1:1", Path: "/"}})
	if err == nil || !strings.Contains(err.Error(), "connect user 1 of 1") {
		t.Errorf("error %v", err)
	}
}

func TestParseJMeter(t *testing.T) {
	const head = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,grpThreads,allThreads,Latency,\"answer\"\n"
	samples, err := parseResults(strings.NewReader(head +
		"1795269847900,5,connect,200,OK,users 1-1,,true,241,2,2,5,\n" +
		"1795269847910,347,request,200,OK,users 1-1,text,true,241,2,2,347,done\n" +
		"1795269847911,12,request,409,Conflict,users 1-2,text,true,241,2,2,12,busy\n" +
		"1795269847912,13,request,200,OK,users 1-3,text,false,241,2,2,13,done\n" +
		"1795269847913,14,request,Non HTTP response code: java.net.SocketException,\"reset, by peer\",users 1-4,,false,0,2,2,0,error\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range samples {
		got = append(got, string(s.Result)+" "+s.Latency.String())
	}
	if want := "done 347ms|busy 12ms|error 13ms|error 14ms"; strings.Join(got, "|") != want {
		t.Errorf("samples %v, want %s", got, want)
	}
	if samples[0].At.UnixMilli() != 1795269847910 {
		t.Errorf("sent at %v", samples[0].At)
	}
	for _, bad := range []string{"", "a,b\n1,2\n", head + "x,1,request,200,OK,t,,true,1,1,1,1,done\n", head + "1,2\n"} {
		if _, err := parseResults(strings.NewReader(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
