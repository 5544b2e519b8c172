#!/bin/sh
# An extension in shell: no more files in the workspace than the first argument says.
# A request is one line and begins with protocol, id and method in this order, so that sed is enough to answer it.
set -eu
limit=$1
head=$(sed -n '1s/^{"protocol":"\([a-z0-9.]*\)","id":"\([0-9a-f]*\)","method":"\([a-z]*\)".*/\1 \2 \3/p')
# shellcheck disable=SC2086  # three words
set -- $head
envelope="\"protocol\":\"$1\",\"id\":\"$2\",\"method\":\"$3\""

case $3 in
describe)
    result='{"extension":{"id":"example.budget","version":"1.0.0"},"protocols":["boxeval.extension.v1"],'
    result=$result'"requiredCapabilities":["boxeval.workspace.files"],"optionalCapabilities":[],'
    result=$result'"graders":[],"taskVerdictPolicies":[]}'
    ;;
resolve)
    result='{"cases":[]}'
    ;;
prepare)
    result='{"artifacts":[],"requestedInstrumentation":[],"extensionData":{}}'
    ;;
evaluate)
    count=$(find "$BOXEVAL_WORKSPACE" -type f | wc -l | tr -d ' ')
    status=passed
    [ "$count" -le "$limit" ] || status=failed
    result='{"checks":[{"id":"example.budget.files","status":"'$status'",'
    result=$result'"detail":"'$count' files of at most '$limit'","evidenceRefs":["boxeval.changes"]}],'
    result=$result'"metrics":[{"id":"example.budget.count","value":'$count',"unit":"files"}]}'
    ;;
esac
printf '{%s,"result":%s}\n' "$envelope" "$result"
