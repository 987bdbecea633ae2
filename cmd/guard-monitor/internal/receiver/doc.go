// Package receiver tells people and programs of alerts: a generic webhook and
// Alertmanager, and the chat robots of Slack, DingTalk, Feishu and WeCom.
//
// A receiver sends one notification and says whether it arrived. Robots answer
// 200 to what they refuse, so each kind reads the body before it believes the
// status. When, how often and what to send is up to the caller.
//
// The address of a robot is its password. No error of this package quotes an
// address, a secret or a token, and none of them follows a redirect.
//
// What an alert says comes from events, so from anybody: it is sent as plain
// text where a robot has plain text, and escaped where it has not.
package receiver
