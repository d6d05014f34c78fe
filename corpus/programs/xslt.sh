# ways: more
# needs: xsltproc libxml2-utils
{ echo '<!DOCTYPE r [<!ENTITY e "entity">]><r>'; for i in $(seq 1500); do echo "<i k='$((i % 37))'><n>name &e; $i</n></i>"; done; echo '</r>'; } >a.xml
echo '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:key name="k" match="i" use="@k"/><x:template match="/"><o n="{count(//i)}"><x:for-each select="//i[generate-id() = generate-id(key(&quot;k&quot;, @k)[1])]"><x:sort select="@k" data-type="number"/><g k="{@k}"><x:value-of select="count(key(&quot;k&quot;, @k))"/></g></x:for-each></o></x:template></x:stylesheet>' >a.xsl
$CHECK xsltproc a.xsl a.xml | cksum; $CHECK xmllint --noent --format --xpath 'count(//i[@k > 30]/n)' a.xml; $CHECK xmllint --stream --c14n a.xml | cksum; echo '<a><b></a>' | $CHECK xmllint - 2>&1; $CHECK xmllint --html --noout - <<<'<p>x<table><b>' 2>&1
