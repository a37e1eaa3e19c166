package endpoint

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Close cancels what does not end within its bound, in both eras, and leaves nothing running.
func TestCloseLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	started := make(chan struct{}, 2)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		started <- struct{}{}
		<-ctx.Done()
		return call.Reply{Outcome: call.Outcome{Code: call.CodeCancelled, Delivery: call.DeliveryUnknown, Message: "Cancelled."}}
	})
	session := f.initialize("2025-11-25")
	f.initialize("2025-06-18")
	answers := make(chan reply, 2)
	go func() { answers <- f.modernCall("{}", `"progressToken":1`) }()
	go func() {
		answers <- f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, session...)
	}()
	<-started
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := f.Close(ctx); err == nil {
		t.Error("Close says that nothing was cancelled")
	}
	for range 2 {
		if a := <-answers; a.at("result", "_meta", "org.ostiary/outcome", "code") != `"cancelled"` {
			t.Errorf("a cancelled call: %v", a)
		}
	}
	if err := f.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
	f.http.CloseClientConnections()
	f.http.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // it is one
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// F-46: a body that does not arrive in time is 408, whatever was to become of it.
func TestF46_SlowBody(t *testing.T) {
	f := serve(t, echo)
	inner := f.http.Config.Handler
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(30 * time.Millisecond))
		inner.ServeHTTP(w, r)
	}))
	defer slow.Close()
	f.url = slow.URL + "/v1/mcp"
	body, feed := io.Pipe()
	defer feed.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", f.url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + aliceToken}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// S-017: reserved keys that were taken out of a caller's _meta are told, not their values.
func TestS017_StrippedKeysAreTold(t *testing.T) {
	told := make(chan string, 4)
	f := serve(t, echo, func(o *Options) {
		o.OnRefused = func(kind, principal, detail string) { told <- kind + " " + principal + " " + detail }
	})
	session := f.initialize("2025-11-25")
	f.modernCall("{}", `"io.modelcontextprotocol/x":"value","com.mcp/y":1,"mine/z":2`)
	f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"org.ostiary/outcome":"value"}}}`, session...)
	for _, want := range []string{"io.modelcontextprotocol/x com.mcp/y", "org.ostiary/outcome"} {
		got := <-told
		if got != `reserved_meta alice "`+want+`"` || strings.Contains(got, "value") {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}
