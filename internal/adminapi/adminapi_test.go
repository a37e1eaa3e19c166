package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// fake is a gateway that keeps what it was asked, and answers what it was told to.
type fake struct {
	asked  []any
	answer any
	err    error
	call   func(context.Context) (ostiary.CallReply, error) // nil: as any other operation
	waits  chan struct{}                                    // WorldNext says that it waits
}

func answer[R any](f *fake, asked ...any) (r R, err error) {
	f.asked = asked
	r, _ = f.answer.(R)
	return r, f.err
}

func (f *fake) Status(context.Context) (ostiary.Status, error) { return answer[ostiary.Status](f) }
func (f *fake) Tools(context.Context) ([]ostiary.ToolInfo, error) {
	return answer[[]ostiary.ToolInfo](f)
}
func (f *fake) Call(ctx context.Context, r ostiary.CallRequest) (ostiary.CallReply, error) {
	if f.call != nil {
		return f.call(ctx)
	}
	return answer[ostiary.CallReply](f, r)
}
func (f *fake) Admissions(_ context.Context, p string) ([]ostiary.Admission, error) {
	return answer[[]ostiary.Admission](f, p)
}
func (f *fake) Admit(_ context.Context, d ostiary.AdmissionDecision) ([]ostiary.Admission, error) {
	return answer[[]ostiary.Admission](f, d)
}
func (f *fake) Quarantined(context.Context) ([]ostiary.QuarantineInfo, error) {
	return answer[[]ostiary.QuarantineInfo](f)
}
func (f *fake) Release(_ context.Context, p, t, r string) (ostiary.QuarantineInfo, error) {
	return answer[ostiary.QuarantineInfo](f, p, t, r)
}
func (f *fake) Lock(context.Context) ([]byte, error) { return answer[[]byte](f) }
func (f *fake) Approvals(_ context.Context, all bool) ([]ostiary.ApprovalInfo, error) {
	return answer[[]ostiary.ApprovalInfo](f, all)
}
func (f *fake) Approval(_ context.Context, id string) (ostiary.ApprovalInfo, error) {
	return answer[ostiary.ApprovalInfo](f, id)
}
func (f *fake) Decide(_ context.Context, d ostiary.ApprovalDecision) (ostiary.ApprovalInfo, error) {
	return answer[ostiary.ApprovalInfo](f, d)
}
func (f *fake) Revoke(_ context.Context, d ostiary.Revocation) ([]ostiary.ApprovalInfo, error) {
	return answer[[]ostiary.ApprovalInfo](f, d)
}
func (f *fake) Taints(context.Context) ([]ostiary.TaintInfo, error) {
	return answer[[]ostiary.TaintInfo](f)
}
func (f *fake) DropTaint(_ context.Context, d ostiary.TaintDrop) (ostiary.TaintInfo, error) {
	return answer[ostiary.TaintInfo](f, d)
}
func (f *fake) Evidence(_ context.Context, e ostiary.EvidenceFilter) ([]ostiary.EvidenceInfo, error) {
	return answer[[]ostiary.EvidenceInfo](f, e)
}
func (f *fake) EvidenceContent(_ context.Context, id string) (ostiary.EvidenceInfo, error) {
	return answer[ostiary.EvidenceInfo](f, id)
}
func (f *fake) DecideEvidence(_ context.Context, id, verb, reason string) (ostiary.EvidenceInfo, error) {
	return answer[ostiary.EvidenceInfo](f, id, verb, reason)
}
func (f *fake) Prune(_ context.Context, r ostiary.PruneRequest) (ostiary.PruneReport, error) {
	return answer[ostiary.PruneReport](f, r)
}
func (f *fake) Explain(_ context.Context, q ostiary.ExplainRequest) (ostiary.JSON, error) {
	return answer[ostiary.JSON](f, q)
}

func (f *fake) WorldHead(_ context.Context, scopes []call.Scope) (call.Frontier, error) {
	return answer[call.Frontier](f, scopes)
}
func (f *fake) WorldScopes(_ context.Context, after call.Scope, limit int) (ostiary.WorldScopes, error) {
	return answer[ostiary.WorldScopes](f, after, limit)
}
func (f *fake) WorldDelta(_ context.Context, scope call.Scope, after int64, limit int) (ostiary.WorldDelta, error) {
	return answer[ostiary.WorldDelta](f, scope, after, limit)
}
func (f *fake) WorldNext(ctx context.Context, seen call.Frontier, wait time.Duration) (ostiary.WorldNews, error) {
	if f.answer == nil { // nothing comes
		f.waits <- struct{}{}
		<-ctx.Done()
		return ostiary.WorldNews{}, ctx.Err()
	}
	return answer[ostiary.WorldNews](f, seen, wait)
}

// fill gives every exported field of a value something to carry.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case ostiary.JSON:
		v.SetBytes(fmt.Appendf(nil, `{"n":%d,"exact":9007199254740993}`, *n))
		return
	case json.RawMessage:
		v.SetBytes(fmt.Appendf(nil, `{"n":%d,"exact":9007199254740993}`, *n))
		return
	case call.Outcome:
		v.Set(reflect.ValueOf(call.Outcome{Status: call.Failed, Delivery: call.NotSent, Code: call.CodeDenied}))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, *n, time.UTC)))
		return
	}
	if v.CanAddr() {
		if _, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
			return // a word of a closed list; its zero value will do
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d\u202e\n", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<40)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 255, byte(*n)})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, n)
		fill(e, n)
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i), n)
			}
		}
	}
}

// operations are the methods of the interfaces, by name.
func operations() map[string]reflect.Method {
	m := map[string]reflect.Method{}
	for _, t := range []reflect.Type{reflect.TypeFor[ostiary.Operations](), reflect.TypeFor[ostiary.Review](), reflect.TypeFor[ostiary.World]()} {
		for i := range t.NumMethod() {
			m[t.Method(i).Name] = t.Method(i)
		}
	}
	return m
}

func dial(t *testing.T, f *fake) *Client {
	t.Helper()
	dir := t.TempDir()
	s, err := Serve(dir, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every operation has a route of its own, and every parameter and every field of the answer crosses it as it is.
func TestEveryOperationCrosses(t *testing.T) {
	all := operations()
	if got, want := slices.Sorted(maps.Keys(paths)), slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("routes: got %v, want %v", got, want)
	}
	seen := map[string]string{}
	for op, path := range paths {
		if other, twice := seen[path]; twice {
			t.Errorf("%s is the route of %s and of %s", path, op, other)
		}
		seen[path] = op
	}
	f := &fake{}
	c := dial(t, f)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := 0
		method := reflect.ValueOf(c).MethodByName(name)
		in := []reflect.Value{reflect.ValueOf(t.Context())}
		var want []any
		for i := 1; i < method.Type().NumIn(); i++ {
			p := reflect.New(method.Type().In(i)).Elem()
			fill(p, &n)
			in, want = append(in, p), append(want, p.Interface())
		}
		result := reflect.New(method.Type().Out(0)).Elem()
		fill(result, &n)
		f.answer, f.err, f.asked = result.Interface(), nil, nil
		out := method.Call(in)
		if err, _ := out[1].Interface().(error); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Progress" }, cmp.Ignore())
		if diff := cmp.Diff(want, f.asked, ignore); diff != "" {
			t.Errorf("%s was asked (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(result.Interface(), out[0].Interface()); diff != "" {
			t.Errorf("%s answered (-want +got):\n%s", name, diff)
		}
	}
}

// A refusal keeps its words and its kind on the way.
func TestRefusalsCross(t *testing.T) {
	f := &fake{}
	c := dial(t, f)
	for _, err := range []error{ostiary.ErrAmbiguous, ostiary.ErrInvalidDecision} {
		f.err = fmt.Errorf("decide on x: %w", err)
		_, got := c.Decide(t.Context(), ostiary.ApprovalDecision{})
		if got == nil || got.Error() != f.err.Error() || ostiary.FaultOf(got) != ostiary.FaultOf(err) || ostiary.FaultOf(got) == ostiary.FaultNone {
			t.Errorf("%v: got %v (%s)", err, got, ostiary.FaultOf(got))
		}
	}
	f.err = errors.New("disk full")
	if _, err := c.Lock(t.Context()); err == nil || err.Error() != "disk full" || ostiary.FaultOf(err) != ostiary.FaultNone {
		t.Errorf("got %v (%s)", err, ostiary.FaultOf(err))
	}
}

// Whoever cancels a call is told what became of it all the same, also if the call has not reached the gateway yet.
func TestR3_1_ACancelledCallSaysItsOutcome(t *testing.T) {
	begun := make(chan struct{}, 2)
	want := ostiary.CallReply{Outcome: call.Outcome{Status: call.StatusUnknown, Delivery: call.DeliveryUnknown, Effect: call.EffectUnconfirmed, Code: call.CodeCancelled}}
	f := &fake{call: func(ctx context.Context) (ostiary.CallReply, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return want, nil
	}}
	c := dial(t, f)
	for _, early := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		if early {
			c.http.Transport = late{c.http.Transport, cancel, make(chan struct{})}
		} else {
			go func() {
				<-begun
				cancel()
			}()
		}
		got, err := c.Call(ctx, ostiary.CallRequest{Tool: "x"})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("early %t: %v (-want +got):\n%s", early, err, diff)
		}
	}
}

// late lets a call leave only once it has been cancelled in vain.
type late struct {
	http.RoundTripper
	cancel context.CancelFunc
	vain   chan struct{}
}

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Path {
	case paths["Call"]:
		l.cancel()
		<-l.vain
	case cancelPath:
		defer func() {
			select {
			case l.vain <- struct{}{}:
			default:
			}
		}()
	}
	return l.RoundTripper.RoundTrip(r)
}

// A gateway that goes in the midst of a call leaves its caller with an outcome that is not known, and not with a failure.
func TestR3_1_AGatewayThatGoesLeavesTheOutcomeUnknown(t *testing.T) {
	f := &fake{}
	dir := t.TempDir()
	s, err := Serve(dir, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	f.call = func(ctx context.Context) (ostiary.CallReply, error) {
		_ = s.srv.Close() // the connection of this very call with all others
		<-ctx.Done()
		return ostiary.CallReply{}, nil
	}
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), ostiary.CallRequest{}); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Call(t.Context(), ostiary.CallRequest{}); !errors.Is(err, ErrNotRunning) || errors.Is(err, ErrUnanswered) {
		t.Errorf("after that: got %v", err)
	}
}

// What is no request of ours is refused before anything is done.
func TestBadRequests(t *testing.T) {
	f := &fake{}
	h := routes(f, slog.New(slog.DiscardHandler), t.Context())
	for name, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"unknown field": {http.MethodPost, "/v1/admit", `{"provider":"p","allx":true}`, http.StatusBadRequest},
		"no JSON":       {http.MethodPost, "/v1/admit", `provider`, http.StatusBadRequest},
		"two values":    {http.MethodPost, "/v1/admit", `{} {}`, http.StatusBadRequest},
		"get":           {http.MethodGet, "/v1/admit", ``, http.StatusMethodNotAllowed},
		"unknown":       {http.MethodPost, "/v1/nothing", `{}`, http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		f.asked = nil
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.want || f.asked != nil {
			t.Errorf("%s: got %d, want %d; asked %v", name, w.Code, c.want, f.asked)
		}
	}
}

func TestDialWithoutAGateway(t *testing.T) {
	if _, err := Dial(t.Context(), t.TempDir()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}

// A command that waits for something to happen does not hold up the end of a gateway, and gets an answer.
func TestR5_7_WaitingEndsWithTheServer(t *testing.T) {
	dir := t.TempDir()
	f := &fake{waits: make(chan struct{}, 1)}
	s, err := Serve(dir, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := call.Frontier{"qq:all": 3}
	type result struct {
		news ostiary.WorldNews
		err  error
	}
	got := make(chan result, 1)
	go func() {
		news, err := c.WorldNext(t.Context(), seen, time.Hour)
		got <- result{news, err}
	}()
	<-f.waits
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if r := <-got; r.err != nil || len(r.news.Commits) != 0 || !maps.Equal(r.news.Frontier, seen) {
		t.Errorf("got %+v", r)
	}
	if _, err := c.WorldNext(t.Context(), seen, time.Hour); !errors.Is(err, ErrNotRunning) {
		t.Errorf("afterwards: %v", err)
	}
}
