package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// A page in Chinese ends its sentences as Chinese does, and says in Chinese why a message was
// sent and what became of it. What a receiver answered stays as it is.
func TestNotificationsInChinese(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.add(t, event("one"))
	s.explain(t)
	var list []store.Notification
	for reason, err := range map[string]string{
		"digest of 40 groups": "",
		"not acknowledged":    `receiver "ops": status 502: <b>Bad Gateway</b>`,
		"more operations":     `receiver "ops": code 9499: too fast`,
		"escalated":           `receiver "ops": the answer has no code: no reason given`,
		"cause found":         `receiver "ops": the answer is not ok: invalid_token`,
		"not sent":            `receiver "ops": dial tcp 10.0.0.1:443: connect: connection refused`,
	} {
		list = append(list, store.Notification{At: time.Now(), Receiver: "ops", Incident: incidentID, Reason: reason, Attempts: 1, Error: err})
	}
	if err := s.store.AddNotifications(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	chinese := s.page(t, "/incidents/"+incidentID, "Accept-Language", "zh")
	mustContain(t, chinese, "40 组的摘要", "无人确认", "状态码 502：", "&lt;b&gt;Bad Gateway&lt;/b&gt;", "代码 9499：", "应答中没有代码：", "未说明原因",
		"应答不是 ok：", "未送达：", "dial tcp 10.0.0.1:443: connect: connection refused", "7 个操作已回滚，未改变任何数据。</p>")
	mustNotContain(t, chinese, "digest of", "not acknowledged", "receiver &#34;ops&#34;", "the answer", "no reason given", "数据.")
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "未改变任何数据。另一个 Redis 节点接管")
	english := s.page(t, "/incidents/"+incidentID)
	mustContain(t, english, "digest of 40 groups", "not acknowledged", "not delivered: status 502: &lt;b&gt;Bad Gateway", "7 operations were rolled back and changed nothing. </p>")
	mustContain(t, s.page(t, "/"), "changed nothing. Another Redis node")
	if strings.Contains(english, "receiver &#34;ops&#34;") {
		t.Error("the name of the receiver is there twice")
	}
}
